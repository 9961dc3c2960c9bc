"""Whether instructions may become native code, and how many threads execute it."""

from __future__ import annotations

import os

from mfmadsl.error import ArgumentError

_VARIABLE, _THREADS = "MFMADSL_NATIVE", "MFMADSL_THREADS"
_MOST_THREADS = 8
"""There are 16 blocks of waves to share at most, of a portion of workgroups."""


def native_code_is_wanted() -> bool:
    """Unless MFMADSL_NATIVE is 0. Raises ArgumentError for what is neither 0 nor 1."""
    told = os.environ.get(_VARIABLE, "1")
    if told not in ("0", "1"):
        raise ArgumentError(f"{_VARIABLE}: is 0 or 1, not {told!r}")
    return told == "1"


def threads_wanted() -> int:
    """As many as MFMADSL_THREADS says, but not too many; one where it says nothing, for a machine
    with other work loses by more. Raises ArgumentError for what is no number from 1 on."""
    told = os.environ.get(_THREADS, "1")
    if not (told.isascii() and told.isdigit() and int(told) > 0):
        raise ArgumentError(f"{_THREADS}: is a number from 1 on, not {told!r}")
    return min(int(told), _MOST_THREADS)
