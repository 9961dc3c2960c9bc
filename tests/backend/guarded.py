"""Arrays at the very end of their pages: an access past the end ends the process."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def _protect(address: int, access: int) -> None:
    if _LIBC.mprotect(address, mmap.PAGESIZE, access):
        raise OSError(ctypes.get_errno(), "mprotect")


@contextmanager
def guarded(*arrays: Array, before: bool = False) -> Iterator[list[Array]]:
    """Copies that end where a page begins that nobody may touch, or begin where one ends."""
    maps, copies, fences = [], [], []
    for array in arrays:
        pages = -(-array.nbytes // mmap.PAGESIZE)
        memory = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
        maps.append(memory)
        first = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        fences.append(first if before else first + pages * mmap.PAGESIZE)
        offset = mmap.PAGESIZE if before else pages * mmap.PAGESIZE - array.nbytes
        copy = np.frombuffer(memory, array.dtype, array.size, offset).reshape(array.shape)
        copy[...] = array
        copies.append(copy)
    for fence in fences:
        _protect(fence, 0)
    try:
        yield copies
    finally:
        for fence in fences:
            _protect(fence, mmap.PROT_READ | mmap.PROT_WRITE)


@contextmanager
def banded(array: Array, band: int = 1024) -> Iterator[Array]:
    """A copy within bytes of one value, of which none may be another afterwards."""
    memory = np.full(array.nbytes + 2 * band, 0xA5, np.uint8)
    copy = memory[band : band + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    yield copy
    assert (memory[:band] == 0xA5).all()
    assert (memory[band + array.nbytes :] == 0xA5).all()
