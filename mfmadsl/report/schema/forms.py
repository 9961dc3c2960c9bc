"""The forms that the schema is made of: numbers, objects with exactly these properties."""

from __future__ import annotations

from typing import Any

STRING = {"type": "string"}
NATURAL = {"type": "integer", "minimum": 0}
POSITIVE = {"type": "integer", "minimum": 1}
SHARE = {"type": "number", "minimum": 0}
COUNTS = {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}}


def or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def exactly(**properties: Any) -> dict[str, Any]:
    """An object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
