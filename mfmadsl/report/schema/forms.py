"""The forms that the schema is made of: numbers, lists, objects with exactly these properties."""

from __future__ import annotations

from typing import Any

from mfmadsl.model import ARCHITECTURES, ELEMENT_TYPES, INDEX, INDICES

STRING = {"type": "string"}
BOOLEAN = {"type": "boolean"}
NUMBER = {"type": "number"}
NATURAL = {"type": "integer", "minimum": 0}
POSITIVE = {"type": "integer", "minimum": 1}
SHARE = {"type": "number", "minimum": 0}
COUNTS = {"type": "object", "additionalProperties": NATURAL}


def one_of(*words: str) -> dict[str, Any]:
    """One of some words."""
    return {"enum": list(words)}


CHIP = one_of(*ARCHITECTURES)
OPERAND = one_of(*INDICES)
ELEMENT_TYPE = one_of(*ELEMENT_TYPES, INDEX.name)


def ref(name: str) -> dict[str, Any]:
    """What stands in `$defs` by that name."""
    return {"$ref": f"#/$defs/{name}"}


def or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def array(items: dict[str, Any]) -> dict[str, Any]:
    """A list."""
    return {"type": "array", "items": items}


def some(items: dict[str, Any]) -> dict[str, Any]:
    """A list that is not empty."""
    return {**array(items), "minItems": 1}


def several(count: int, items: dict[str, Any]) -> dict[str, Any]:
    """A list of so many."""
    return {**array(items), "minItems": count, "maxItems": count}


def exactly(**properties: Any) -> dict[str, Any]:
    """An object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


REGISTERS = exactly(vector=NATURAL, accumulation=NATURAL, scalar=NATURAL)
"""A kernel's registers by kind."""

PLACED = {
    "block": NATURAL,
    "row": NATURAL,
    "column": NATURAL,
    "lane": NATURAL,
    "register": NATURAL,
    "bits": several(2, NATURAL),
}
"""An element of an operand, and where a lane has it."""
