"""What keeps a layout from being told in another project's words, or from being compared."""

from __future__ import annotations

from mfmadsl.error import MfmadslError


class ExportError(MfmadslError, ValueError):
    """A layout cannot be expressed in a format, or there is nothing to compare it with."""
