"""What `export --as json` and `diff` print."""

from __future__ import annotations

from typing import Any

from mfmadsl.report.schema.forms import (
    BOOLEAN,
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
    some,
)


def layouts() -> dict[str, Any]:
    """Operands with their elements, and verdicts about them."""
    verdict = one_of("equal", "equal up to the order of k", "different")
    place = or_null(exactly(lane=NATURAL, element=NATURAL))
    element = exactly(**PLACED, element=NATURAL)
    exported = exactly(
        operand=OPERAND,
        type=ELEMENT_TYPE,
        rows=POSITIVE,
        columns=POSITIVE,
        stored=BOOLEAN,
        elements=array(element),
    )
    compared = exactly(
        operand=OPERAND,
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
            operands=array(exported),
        ),
        "difference": exactly(
            name=STRING,
            other=STRING,
            verdict=verdict,
            operands=some(compared),
        ),
    }
