"""What `check` and `doctor` print."""

from __future__ import annotations

from typing import Any

from mfmadsl.doctor.finding import STATES
from mfmadsl.report.schema.forms import (
    BOOLEAN,
    NATURAL,
    POSITIVE,
    STRING,
    array,
    exactly,
    one_of,
    ref,
)


def findings() -> dict[str, Any]:
    """Diagnostics of a file, and findings about a machine."""
    return {
        "doctor": exactly(
            works=BOOLEAN,
            findings=array(
                exactly(
                    name=STRING,
                    state=one_of(*STATES),
                    needed=BOOLEAN,
                    found=STRING,
                    remedy=STRING,
                )
            ),
        ),
        "check": exactly(
            intrinsics=NATURAL,
            microkernels=NATURAL,
            diagnostics=array(ref("diagnostic")),
        ),
        "diagnostic": exactly(
            file=STRING,
            line=POSITIVE,
            column=POSITIVE,
            end_line=POSITIVE,
            end_column=POSITIVE,
            severity={"const": "error"},
            code=STRING,
            message=STRING,
            hint=STRING,
        ),
    }
