"""What `list`, `show` and `check` print of entries of the language."""

from __future__ import annotations

from typing import Any

from mfmadsl.model import ARCHITECTURES, ELEMENT_TYPES, FEATURES, INDEX, MODIFIERS
from mfmadsl.report.schema.forms import NATURAL, POSITIVE, STRING, exactly, or_null


def entries() -> dict[str, Any]:
    """Intrinsics, micro-kernels and reads, and where their elements lie."""
    types = [*ELEMENT_TYPES, INDEX.name]
    return {
        "intrinsic": exactly(
            kind={"const": "intrinsic"},
            name=STRING,
            m=POSITIVE,
            n=POSITIVE,
            k=POSITIVE,
            blocks=POSITIVE,
            types=exactly(**{operand: {"enum": types} for operand in "abc"}),
            sparse={"type": "boolean"},
            scaled={"type": "boolean"},
            modifiers={"type": "array", "items": {"enum": list(MODIFIERS)}},
            cycles={
                "type": "object",
                "propertyNames": {"enum": list(ARCHITECTURES)},
                "additionalProperties": POSITIVE,
                "minProperties": 1,
            },
            call=STRING,
            in_llvm={"type": "boolean"},
            aliases={"type": "array", "items": STRING},
        ),
        "layout": exactly(
            name=STRING,
            operand={"enum": ["a", "b", "c", "index", "scale_a", "scale_b"]},
            shape={"type": "array", "items": POSITIVE, "minItems": 2, "maxItems": 2},
            blocks=POSITIVE,
            wave=POSITIVE,
            elements={"type": "array", "items": {"$ref": "#/$defs/element"}},
        ),
        "element": exactly(
            block=NATURAL,
            row=NATURAL,
            column=NATURAL,
            lane=NATURAL,
            register=NATURAL,
            bits={"type": "array", "items": NATURAL, "minItems": 2, "maxItems": 2},
        ),
        "microkernel": exactly(
            kind={"const": "microkernel"},
            name=STRING,
            m=POSITIVE,
            n=POSITIVE,
            k=POSITIVE,
            types=exactly(**{operand: {"enum": types} for operand in "abc"}),
            call=or_null(STRING),
            features={"type": "array", "items": {"enum": list(FEATURES)}, "minItems": 1},
            register_bits=POSITIVE,
            registers=POSITIVE,
            tiles={"type": "boolean"},
        ),
        "vectors": exactly(
            kind={"const": "microkernel"},
            name=STRING,
            operand={"enum": ["a", "b", "c"]},
            shape={"type": "array", "items": POSITIVE, "minItems": 2, "maxItems": 2},
            registers=POSITIVE,
            elements_per_register=POSITIVE,
            broadcast={"type": "boolean"},
            elements={
                "type": "array",
                "items": exactly(row=NATURAL, column=NATURAL, register=NATURAL, element=NATURAL),
            },
        ),
        "read": exactly(
            kind={"const": "read"},
            name=STRING,
            bits=POSITIVE,
            lanes=POSITIVE,
            registers=POSITIVE,
            call=STRING,
            chips={"type": "array", "items": {"enum": list(ARCHITECTURES)}, "minItems": 1},
            elements={
                "type": "array",
                "items": exactly(
                    lane=NATURAL, register=NATURAL, from_lane=NATURAL, element=NATURAL
                ),
            },
        ),
    }
