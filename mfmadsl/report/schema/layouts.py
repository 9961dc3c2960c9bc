"""What `export --as json` and `diff` print."""

from __future__ import annotations

from typing import Any

from mfmadsl.model import ELEMENT_TYPES, INDEX
from mfmadsl.report.schema.forms import NATURAL, POSITIVE, STRING, exactly, or_null


def layouts() -> dict[str, Any]:
    """Operands with their elements, and verdicts about them."""
    operand = {"enum": ["a", "b", "c", "index", "scale_a", "scale_b"]}
    verdict = {"enum": ["equal", "equal up to the order of k", "different"]}
    place = or_null(exactly(lane=NATURAL, element=NATURAL))
    element = exactly(
        block=NATURAL,
        row=NATURAL,
        column=NATURAL,
        lane=NATURAL,
        element=NATURAL,
        register=NATURAL,
        bits={"type": "array", "items": NATURAL, "minItems": 2, "maxItems": 2},
    )
    exported = exactly(
        operand=operand,
        type={"enum": [*ELEMENT_TYPES, INDEX.name]},
        rows=POSITIVE,
        columns=POSITIVE,
        stored={"type": "boolean"},
        elements={"type": "array", "items": element},
    )
    compared = exactly(
        operand=operand,
        verdict=verdict,
        element=or_null(exactly(block=NATURAL, row=NATURAL, column=NATURAL)),
        ours=place,
        theirs=place,
        reason=STRING,
    )
    return {
        "export": exactly(
            name=STRING,
            m=POSITIVE,
            n=POSITIVE,
            k=POSITIVE,
            blocks=POSITIVE,
            wave=POSITIVE,
            operands={"type": "array", "items": exported},
        ),
        "difference": exactly(
            name=STRING,
            other=STRING,
            verdict=verdict,
            operands={"type": "array", "items": compared, "minItems": 1},
        ),
    }
