"""Whether instructions may become native code."""

from __future__ import annotations

import os


def native_code_is_wanted() -> bool:
    """Unless MFMADSL_NATIVE is 0."""
    return os.environ.get("MFMADSL_NATIVE", "1") != "0"
