"""Where HIP lies, if it is there."""

from __future__ import annotations

import ctypes
import os

_NAMES = ("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6")  # ROCm 7 and 6


def hip_libraries() -> tuple[str, ...]:
    """What to ask the dynamic loader for, in this order: its own places, then ROCm's."""
    rocm = os.environ.get("ROCM_PATH") or "/opt/rocm"
    return *_NAMES, os.path.join(rocm, "lib", _NAMES[0])


def hip_is_there() -> bool:
    """Whether the loader finds HIP; it stays loaded then."""
    for name in hip_libraries():
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return True
    return False
