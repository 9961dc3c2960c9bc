"""What `list`, `show` and `check` print of entries of the language."""

from __future__ import annotations

from typing import Any

from mfmadsl.model import FEATURES, MODIFIERS
from mfmadsl.report.schema.forms import (
    BOOLEAN,
    CHIP,
    ELEMENT_TYPE,
    NATURAL,
    OPERAND,
    PLACED,
    POSITIVE,
    STRING,
    array,
    exactly,
    one_of,
    or_null,
    ref,
    several,
    some,
)


def entries() -> dict[str, Any]:
    """Intrinsics, micro-kernels and reads, and where their elements lie."""
    return {
        "intrinsic": exactly(
            kind={"const": "intrinsic"},
            name=STRING,
            m=POSITIVE,
            n=POSITIVE,
            k=POSITIVE,
            blocks=POSITIVE,
            types=exactly(**dict.fromkeys("abc", ELEMENT_TYPE)),
            sparse=BOOLEAN,
            scaled=BOOLEAN,
            modifiers=array(one_of(*MODIFIERS)),
            cycles={
                "type": "object",
                "propertyNames": CHIP,
                "additionalProperties": POSITIVE,
                "minProperties": 1,
            },
            call=STRING,
            in_llvm=BOOLEAN,
            aliases=array(STRING),
        ),
        "layout": exactly(
            name=STRING,
            operand=OPERAND,
            shape=several(2, POSITIVE),
            blocks=POSITIVE,
            wave=POSITIVE,
            elements=array(ref("element")),
        ),
        "element": exactly(**PLACED),
        "microkernel": exactly(
            kind={"const": "microkernel"},
            name=STRING,
            m=POSITIVE,
            n=POSITIVE,
            k=POSITIVE,
            types=exactly(**dict.fromkeys("abc", ELEMENT_TYPE)),
            call=or_null(STRING),
            features=some(one_of(*FEATURES)),
            register_bits=POSITIVE,
            registers=POSITIVE,
            tiles=BOOLEAN,
        ),
        "vectors": exactly(
            kind={"const": "microkernel"},
            name=STRING,
            operand=one_of("a", "b", "c"),
            shape=several(2, POSITIVE),
            registers=POSITIVE,
            elements_per_register=POSITIVE,
            broadcast=BOOLEAN,
            elements=array(exactly(row=NATURAL, column=NATURAL, register=NATURAL, element=NATURAL)),
        ),
        "read": exactly(
            kind={"const": "read"},
            name=STRING,
            bits=POSITIVE,
            lanes=POSITIVE,
            registers=POSITIVE,
            call=STRING,
            chips=some(CHIP),
            elements=array(
                exactly(lane=NATURAL, register=NATURAL, from_lane=NATURAL, element=NATURAL)
            ),
        ),
    }
