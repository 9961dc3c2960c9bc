"""What a pass, and all of lowering, ends in where no code can be made of a kernel."""

from __future__ import annotations

from mfmadsl.error import MfmadslError


class LoweringError(MfmadslError, ValueError):
    """The module is no GPU kernel, or does not fit the chip."""
