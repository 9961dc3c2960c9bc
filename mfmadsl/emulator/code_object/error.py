"""What is wrong with a code object."""

from __future__ import annotations

from mfmadsl.error import MfmadslError


class CodeObjectError(MfmadslError, ValueError):
    """A code object cannot be read, or has something that is not understood."""
