"""Arrays as large as memory, of which little is used: what nobody writes takes no room."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

_LARGE = 1 << 30  # bytes; smaller ones the system gives without being asked
_NO_RESERVE = 0x4000  # MAP_NORESERVE


def reserved(count: int, of: npt.DTypeLike) -> npt.NDArray[Any]:
    """So many zeros of a type."""
    size = count * np.dtype(of).itemsize
    if size < _LARGE:
        return np.zeros(count, of)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    return np.frombuffer(mmap.mmap(-1, size, flags), of)
