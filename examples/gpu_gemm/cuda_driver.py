"""An NVIDIA GPU by its driver: machine code is loaded, run and timed, and so is cuBLAS.

Only functions of two shared libraries are called, so that nothing has to be installed beside the
driver. The libraries are parameters: the tests pass ones that they have written.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from examples.gpu_gemm.cuda import CudaError, Source
from examples.nvcc import Cubin
from examples.product import Array, Size, difference, matrices

WARM, RUNS = 3, 10
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_...


@dataclass(frozen=True)
class Timed:
    """A run on a GPU: microseconds, the mean of RUNS, and what is wrong with C, if anything."""

    microseconds: float
    wrong: str | None


def driver_library() -> Any:
    """libcuda. Raises CudaError where there is none."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise CudaError("there is no NVIDIA GPU here (libcuda.so.1 is not found)") from None


def cublas_library() -> Any | None:
    """cuBLAS, of the system or of a Python package; None if there is none."""
    spec = find_spec("nvidia")
    folders = (spec.submodule_search_locations if spec else None) or ()
    shipped = [
        str(path) for folder in folders for path in Path(folder).glob("*/lib/libcublas.so.*")
    ]
    for name in (*shipped, "libcublas.so.13", "libcublas.so.12", "libcublas.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


class Gpu:
    """The first GPU. Raises CudaError for whatever the driver refuses, with its number."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        device, count, self._context = c_int(), c_int(), c_void_p()
        self._call("cuInit", 0)
        self._call("cuDeviceGetCount", byref(count))
        if not count.value:
            raise CudaError("there is no NVIDIA GPU here (the driver counts none)")
        self._call("cuDeviceGet", byref(device), 0)
        self._call("cuDevicePrimaryCtxRetain", byref(self._context), device)
        self._call("cuCtxSetCurrent", self._context)
        major, minor, name = c_int(), c_int(), ctypes.create_string_buffer(100)
        self._call("cuDeviceGetAttribute", byref(major), _MAJOR, device)
        self._call("cuDeviceGetAttribute", byref(minor), _MINOR, device)
        self._call("cuDeviceGetName", name, len(name), device)
        self.arch, self.name = f"sm_{major.value}{minor.value}", name.value.decode()

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._driver, name)(*arguments)
        if status:
            raise CudaError(f"the CUDA driver refuses {name}: error {status}")

    def run(self, made: Source, cubin: Cubin, size: Size) -> Timed:
        """Launch a kernel and time it."""
        module, function = c_void_p(), c_void_p()
        self._call("cuModuleLoadData", byref(module), c_char_p(cubin.code))
        try:
            self._call("cuModuleGetFunction", byref(function), module, made.symbol.encode())

            def launch(pointers: Sequence[c_uint64]) -> None:
                given = dict(zip("ABC", pointers, strict=True))
                taken = [given[name[0]] for name in made.parameters]
                values = (c_void_p * len(taken))(*(ctypes.addressof(each) for each in taken))
                self._call(
                    "cuLaunchKernel", function, *made.grid, *made.block, 0, None, values, None
                )

            return self._timed(launch, size)
        finally:
            self._call("cuModuleUnload", module)

    def run_cublas(self, cublas: Any, size: Size) -> Timed:
        """Time cuBLAS' product in float32, which takes matrices by columns: C^T = B^T x A^T."""
        handle, one, zero = c_void_p(), c_float(1), c_float(0)

        def check(name: str, *arguments: Any) -> None:
            if status := getattr(cublas, name)(*arguments):
                raise CudaError(f"cuBLAS refuses {name}: error {status}")

        check("cublasCreate_v2", byref(handle))
        try:

            def launch(pointers: Sequence[c_uint64]) -> None:
                a, b, c = (c_void_p(each.value) for each in pointers)
                m, n, k = size.m, size.n, size.k
                check(
                    "cublasSgemm_v2", handle, 0, 0, n, m, k, byref(one), b, n, a, k, byref(zero),
                    c, n,
                )  # fmt: skip

            return self._timed(launch, size)
        finally:
            check("cublasDestroy_v2", handle)

    def _timed(self, launch: Callable[[Sequence[c_uint64]], None], size: Size) -> Timed:
        a, b, c = matrices(size)
        with self._memory(a, b, c) as pointers:
            for _ in range(WARM):
                launch(pointers)
            with self._event() as start, self._event() as end:
                self._call("cuEventRecord", start, None)
                for _ in range(RUNS):
                    launch(pointers)
                self._call("cuEventRecord", end, None)
                self._call("cuEventSynchronize", end)
                milliseconds = c_float()
                self._call("cuEventElapsedTime", byref(milliseconds), start, end)
            result = np.empty_like(c)
            self._call(
                "cuMemcpyDtoH_v2", c_void_p(result.ctypes.data), pointers[2], c_size_t(c.nbytes)
            )
        return Timed(milliseconds.value * 1e3 / RUNS, difference(a, b, result))

    @contextmanager
    def _memory(self, *arrays: Array) -> Iterator[list[c_uint64]]:
        """The GPU's copies of arrays."""
        pointers: list[c_uint64] = []
        try:
            for array in arrays:
                pointer = c_uint64()
                self._call("cuMemAlloc_v2", byref(pointer), c_size_t(array.nbytes))
                pointers.append(pointer)
                self._call(
                    "cuMemcpyHtoD_v2", pointer, c_void_p(array.ctypes.data), c_size_t(array.nbytes)
                )
            yield pointers
        finally:
            for pointer in pointers:
                self._call("cuMemFree_v2", pointer)

    @contextmanager
    def _event(self) -> Iterator[c_void_p]:
        event = c_void_p()
        self._call("cuEventCreate", byref(event), 0)
        try:
            yield event
        finally:
            self._call("cuEventDestroy_v2", event)
