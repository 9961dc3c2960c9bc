"""Where a linker for code objects is."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from functools import cache
from pathlib import Path

_NAMES = ("ld.lld", *(f"ld.lld-{version}" for version in range(22, 15, -1)))
_ROCM = Path("/opt/rocm/llvm/bin/ld.lld")


@cache
def find_linker() -> tuple[str, ...] | None:
    """The command of an lld for ELF: from PATH, from ROCm, or from the pip package ziglang."""
    for name in (*_NAMES, str(_ROCM)):
        if path := shutil.which(name):
            return (path,)
    if importlib.util.find_spec("ziglang"):
        return sys.executable, "-m", "ziglang", "ld.lld"
    return None
