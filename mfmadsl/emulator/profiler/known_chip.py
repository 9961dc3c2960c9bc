"""The chips that the profiler models."""

from __future__ import annotations

from mfmadsl.error import ArgumentError
from mfmadsl.model import ARCHITECTURES, Architecture


def chip_of(arch: str) -> Architecture:
    """The chip of that name. Raises ArgumentError for one that is not known."""
    if arch not in ARCHITECTURES:
        raise ArgumentError(f"no profile of `{arch}`, but of: {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[arch]
