"""The JSON schema of what the command line prints as JSON."""

from __future__ import annotations

from typing import Any

from mfmadsl.model import ARCHITECTURES, ELEMENT_TYPES, INDEX, MODIFIERS


def json_schema() -> dict[str, Any]:
    """JSON Schema 2020-12; `$defs` has each form by itself."""
    types = [*ELEMENT_TYPES, INDEX.name]
    definitions = {
        "intrinsic": _object(
            name=_STRING,
            m=_POSITIVE,
            n=_POSITIVE,
            k=_POSITIVE,
            blocks=_POSITIVE,
            types=_object(**{operand: {"enum": types} for operand in "abc"}),
            sparse={"type": "boolean"},
            scaled={"type": "boolean"},
            modifiers={"type": "array", "items": {"enum": list(MODIFIERS)}},
            cycles={
                "type": "object",
                "propertyNames": {"enum": list(ARCHITECTURES)},
                "additionalProperties": _POSITIVE,
                "minProperties": 1,
            },
            call=_STRING,
            aliases={"type": "array", "items": _STRING},
        ),
        "layout": _object(
            name=_STRING,
            operand={"enum": ["a", "b", "c", "index", "scale_a", "scale_b"]},
            shape={"type": "array", "items": _POSITIVE, "minItems": 2, "maxItems": 2},
            blocks=_POSITIVE,
            wave=_POSITIVE,
            elements={"type": "array", "items": {"$ref": "#/$defs/element"}},
        ),
        "element": _object(
            block=_NATURAL,
            row=_NATURAL,
            column=_NATURAL,
            lane=_NATURAL,
            register=_NATURAL,
            bits={"type": "array", "items": _NATURAL, "minItems": 2, "maxItems": 2},
        ),
        "check": _object(
            intrinsics=_NATURAL,
            diagnostics={"type": "array", "items": {"$ref": "#/$defs/diagnostic"}},
        ),
        "diagnostic": _object(
            file=_STRING,
            line=_POSITIVE,
            column=_POSITIVE,
            end_line=_POSITIVE,
            end_column=_POSITIVE,
            severity={"const": "error"},
            code=_STRING,
            message=_STRING,
            hint=_STRING,
        ),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What mfmadsl prints as JSON",
        "anyOf": [
            {"$ref": "#/$defs/layout"},
            {"type": "array", "items": {"$ref": "#/$defs/intrinsic"}},
            {"$ref": "#/$defs/check"},
        ],
        "$defs": definitions,
    }


_STRING = {"type": "string"}
_NATURAL = {"type": "integer", "minimum": 0}
_POSITIVE = {"type": "integer", "minimum": 1}


def _object(**properties: Any) -> dict[str, Any]:
    """An object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
