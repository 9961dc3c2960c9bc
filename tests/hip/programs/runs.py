"""Runs kernels by `mfmadsl.run` on whatever GPU there is; prints what is wrong.

mfmadsl device -- python runs.py
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm

import mfmadsl
from mfmadsl.gemm import Gemm

wrong: list[str] = []


def expect(right: bool, what: str) -> None:
    if not right:
        wrong.append(what)


class Foreign:
    """An array of another library, which lies in the GPU's memory."""

    def __init__(self, array: npt.NDArray[Any], strides: tuple[int, ...] | None = None) -> None:
        self._hip = ctypes.CDLL("libamdhip64.so")
        self._pointer = ctypes.c_void_p()
        self._array = array
        self._hip.hipMalloc(ctypes.byref(self._pointer), ctypes.c_size_t(array.nbytes))
        self._copy(self._pointer, ctypes.c_void_p(array.ctypes.data), 1)
        self.__cuda_array_interface__ = {
            "shape": array.shape, "typestr": array.dtype.str, "version": 3, "strides": strides,
            "data": (self._pointer.value, False),
        }  # fmt: skip

    def _copy(self, to: ctypes.c_void_p, source: ctypes.c_void_p, kind: int) -> None:
        error = self._hip.hipMemcpy(to, source, ctypes.c_size_t(self._array.nbytes), kind)
        assert not error, "the test's own copy"

    def numpy(self) -> npt.NDArray[Any]:
        self._copy(ctypes.c_void_p(self._array.ctypes.data), self._pointer, 2)
        return self._array


def several_launches() -> None:
    """A split K takes a workspace and two launches."""
    problem = Gemm(None, "gfx942", 33, 20, 512, tiling={"split_k": 2, "k_step": 64})
    kernel = problem.build()
    expect(kernel.next is not None, "two launches")
    arrays = problem.operands()
    ran = mfmadsl.run(kernel, list(arrays))
    expect(problem.compare(*arrays).agrees, "the numbers of two launches")
    expect(ran.arch == "gfx942" and not ran.seconds, f"what ran: {ran}")


def one_launch() -> None:
    """The last workgroup of a tile adds up, and leaves zeros for the next repetition."""
    tiling = {"split_k": 2, "k_step": 64, "one_launch": True}
    problem = Gemm(None, "gfx942", 33, 20, 512, tiling=tiling)
    kernel = problem.build()
    expect(kernel.next is None, "one launch")
    arrays = problem.operands()
    mfmadsl.run(kernel, list(arrays), repeat=2)
    expect(problem.compare(*arrays).agrees, "the numbers of one launch")


def arrays_of_others(problem: Gemm, kernel: mfmadsl.Kernel) -> None:
    """What lies on the GPU is taken as it is, beside what does not; and it is timed."""
    a, b, c = problem.operands()
    result = Foreign(c.copy())
    ran = mfmadsl.run(kernel, [Foreign(a), b, result], repeat=4)
    expect(problem.compare(a, b, result.numpy()).agrees, "the numbers of foreign arrays")
    expect(len(ran.seconds) == 4 and min(ran.seconds) > 0, f"times: {ran.seconds}")
    refused(kernel, [Foreign(a, (2, 64)), b, c], "argument A is not dense and row-major")
    refused(kernel, [Foreign(a[:8]), b, c], "argument A has the shape")


def tensors_of_tvm() -> None:
    """By DLPack, of bfloat16, one of which begins in the middle of an allocation."""
    problem = Gemm(None, "gfx942", 24, 40, 32, dtypes=("bfloat16", None, None))
    a, b, c = problem.operands()
    device = tvm.rocm(0)
    wide = np.concatenate([np.zeros_like(a), a])
    whole = tvm.runtime.tensor(wide, device)
    part = whole._create_view(a.shape, "bfloat16", a.nbytes)
    result = tvm.runtime.tensor(c, device)
    mfmadsl.run(problem.build(), [part, tvm.runtime.tensor(b, device), result])
    expect(problem.compare(a, b, result.numpy()).agrees, "the numbers of tensors of TVM")
    halves = tvm.runtime.tensor(a.astype(np.float16), device)
    refused(problem.build(), [halves, b, c], "argument A is an array of bfloat16, not of float16")


def strides(problem: Gemm, kernel: mfmadsl.Kernel) -> None:
    """Arrays of the host may have any, and get back only what is theirs."""
    a, b, c = problem.operands()
    wide = np.full((c.shape[0], 2 * c.shape[1]), 7, c.dtype)
    mfmadsl.run(kernel, [np.asfortranarray(a), b, wide[:, ::2]])
    expect(problem.compare(a, b, wide[:, ::2]).agrees, "the numbers of a strided result")
    expect(bool((wide[:, 1::2] == 7).all()), "what lies between")


def refused(kernel: Any, args: Any, told: str, **how: Any) -> None:
    try:
        mfmadsl.run(kernel, args, **how)
    except mfmadsl.MfmadslError as error:
        expect(told in str(error), f"{told!r} is not in {str(error)!r}")
    else:
        wrong.append(f"not refused: {told}")


def mistakes(problem: Gemm, kernel: mfmadsl.Kernel) -> None:
    a, b, c = problem.operands()
    refused(kernel, [a, b], "takes 3 arguments")
    refused(kernel, [a, b, c.astype(np.float16)], "argument C is an array of float32")
    refused(kernel, [a, b, None], "argument C is a NumPy array, not NoneType")
    refused(kernel, [a, b, c], "repeat: is a number from 0 on, not -1", repeat=-1)
    refused("s_endpgm", [a, b, c], "kernel: is what `build` returns, not 's_endpgm'")
    c.flags.writeable = False
    refused(kernel, [a, b, c], "argument C is read-only, but the kernel writes to it")
    other = Gemm(None, "gfx90a", 16, 16, 16).build()
    refused(other, [a, b, c], "the kernel is for gfx90a, but the GPU, MI300X (emulated), is a")


small = Gemm(None, "gfx942", 40, 24, 32)
built = small.build()
several_launches()
one_launch()
tensors_of_tvm()
arrays_of_others(small, built)
strides(small, built)
mistakes(small, built)
print("\n".join(wrong) or "all right")
sys.exit(bool(wrong))
