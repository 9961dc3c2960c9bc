"""Whether instructions may become native code."""

from __future__ import annotations

import os

from mfmadsl.error import ArgumentError

_VARIABLE = "MFMADSL_NATIVE"


def native_code_is_wanted() -> bool:
    """Unless MFMADSL_NATIVE is 0. Raises ArgumentError for what is neither 0 nor 1."""
    told = os.environ.get(_VARIABLE, "1")
    if told not in ("0", "1"):
        raise ArgumentError(f"{_VARIABLE}: is 0 or 1, not {told!r}")
    return told == "1"
