"""A kernel by Triton's own compiler and launcher, with a driver that asks PyTorch for nothing.

mfmadsl device -- python triton_sum.py
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import triton
import triton.language as tl
from triton.backends.amd.driver import HIPDriver, HIPLauncher, HIPUtils


class Driver(HIPDriver):  # type: ignore[misc]
    """Triton's, but for its questions for the current device and stream."""

    def __init__(self) -> None:
        self.utils, self.launcher_cls = HIPUtils(), HIPLauncher
        self.get_current_device = lambda: 0
        self.get_current_stream = lambda device: 0
        self.set_current_device = lambda device: None


class Array:
    """What Triton takes for a tensor: a type, and a pointer."""

    def __init__(self, array: npt.NDArray[np.float32]) -> None:
        self.array, self.dtype = array, tl.float32
        self._pointer = ctypes.c_void_p()
        hip.hipMalloc(ctypes.byref(self._pointer), ctypes.c_size_t(array.nbytes))
        hip.hipMemcpy(self._pointer, self._host, ctypes.c_size_t(array.nbytes), 1)

    @property
    def _host(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.array.ctypes.data)

    def data_ptr(self) -> int | None:
        return self._pointer.value

    def numpy(self) -> npt.NDArray[np.float32]:
        hip.hipMemcpy(self._host, self._pointer, ctypes.c_size_t(self.array.nbytes), 2)
        return self.array


@triton.jit
def sums(x, y, z, n, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(z + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


hip: Any = ctypes.CDLL("libamdhip64.so")
triton.runtime.driver.set_active(Driver())
N = 1000
x, y, z = (Array(np.arange(N, dtype=np.float32) * factor) for factor in (1, 2, 0))
sums[(triton.cdiv(N, 256),)](x, y, z, N, block=256)
wrong = int((z.numpy() != 3 * np.arange(N)).sum())
print(wrong, "differ")
sys.exit(wrong != 0)
