"""Where LLVM's assembler for AMD GPUs is."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from functools import cache

_NAMES = ("/opt/rocm/llvm/bin/clang", *(f"clang-{version}" for version in range(22, 18, -1)))
"""Others are older than the chips, or may be."""


@cache
def find_assembler() -> tuple[str, ...] | None:
    """The command of a clang: that of the pip package ziglang, of ROCm, or on PATH."""
    if importlib.util.find_spec("ziglang"):
        return sys.executable, "-m", "ziglang", "clang"
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    return None if found is None else (found,)
