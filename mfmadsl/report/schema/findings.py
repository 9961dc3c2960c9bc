"""What `check` and `doctor` print."""

from __future__ import annotations

from typing import Any

from mfmadsl.doctor.finding import STATES
from mfmadsl.report.schema.forms import NATURAL, POSITIVE, STRING, exactly


def findings() -> dict[str, Any]:
    """Diagnostics of a file, and findings about a machine."""
    return {
        "doctor": exactly(
            works={"type": "boolean"},
            findings={
                "type": "array",
                "items": exactly(
                    name=STRING,
                    state={"enum": list(STATES)},
                    needed={"type": "boolean"},
                    found=STRING,
                    remedy=STRING,
                ),
            },
        ),
        "check": exactly(
            intrinsics=NATURAL,
            microkernels=NATURAL,
            diagnostics={"type": "array", "items": {"$ref": "#/$defs/diagnostic"}},
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
