"""Kernels are launched as the driver wants it: told by a driver written for the test."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from examples.gpu_gemm.cuda import CudaError, Source
from examples.gpu_gemm.cuda_driver import RUNS, WARM, Gpu
from examples.nvcc import Cubin
from examples.product import Size

SIZE = Size(3, 4, 5)
SOURCE = Source("", "main_kernel", ("B_ptr", "A_ptr", "C_ptr"), (2, 3, 1), (16, 8, 1))
CUBIN = Cubin(b"\x7fELF with a \0 in it", 32, 0, 0, 0)


class Driver:
    """Memory, events, and a kernel that multiplies what its three pointers point to."""

    def __init__(self, devices: int = 1, off: float = 0, refuses: str = "") -> None:
        self.devices, self.off, self.refuses = devices, off, refuses
        self.memory: dict[int, Any] = {}
        self.alive: list[str] = []
        self.launched: list[tuple[int, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: 999 if name == self.refuses else self._done(name, arguments)

    def _done(self, name: str, given: tuple[Any, ...]) -> int:
        match name:
            case "cuDeviceGetCount":
                given[0]._obj.value = self.devices
            case "cuDeviceGetAttribute":
                given[0]._obj.value = {75: 9, 76: 0}[given[1]]
            case "cuDeviceGetName":
                given[0].value = b"a GPU of the test"
            case "cuModuleGetFunction":
                assert given[2] == b"main_kernel"
            case "cuMemAlloc_v2":
                pointer = 4096 * (len(self.memory) + 1)
                self.memory[pointer] = bytearray(given[1].value)
                given[0]._obj.value = pointer
                self.alive.append("memory")
            case "cuMemcpyHtoD_v2":
                pointer, host, count = (each.value for each in given)
                self.memory[pointer][:] = ctypes.string_at(host, count)
            case "cuMemcpyDtoH_v2":
                host, pointer, count = (each.value for each in given)
                ctypes.memmove(host, bytes(self.memory[pointer]), count)
            case "cuMemFree_v2":
                self.alive.remove("memory")
            case "cuModuleLoadData":
                self.alive.append("module")
            case "cuModuleUnload":
                self.alive.remove("module")
            case "cuEventCreate":
                self.alive.append("event")
            case "cuEventDestroy_v2":
                self.alive.remove("event")
            case "cuEventElapsedTime":
                given[0]._obj.value = 0.05  # milliseconds
            case "cuLaunchKernel":
                self.launched.append(given[1:7])
                b, a, c = (
                    ctypes.cast(given[9][place], ctypes.POINTER(ctypes.c_uint64))[0]
                    for place in range(3)
                )
                self.multiply(a, b, c)
        return 0

    def multiply(self, a: int, b: int, c: int) -> None:
        left = np.frombuffer(self.memory[a], "f4").reshape(SIZE.m, SIZE.k)
        right = np.frombuffer(self.memory[b], "f4").reshape(SIZE.k, SIZE.n)
        self.memory[c][:] = (left @ right + np.float32(self.off)).tobytes()


class Cublas:
    """A product of matrices that lie by columns, as the BLAS has them."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    def cublasCreate_v2(self, handle: Any) -> int:  # noqa: N802
        return 0

    def cublasDestroy_v2(self, handle: Any) -> int:  # noqa: N802
        return 0

    def cublasSgemm_v2(self, handle: Any, *given: Any) -> int:  # noqa: N802
        turned_a, turned_b, m, n, k, one, a, a_lead, b, b_lead, zero, c, c_lead = given
        assert (turned_a, turned_b, one._obj.value, zero._obj.value) == (0, 0, 1, 0)

        def columns(pointer: Any, lead: int, count: int) -> Any:
            memory = self.driver.memory[pointer.value]
            return np.frombuffer(memory, "f4").reshape(count, lead).T

        product = columns(a, a_lead, k)[:m] @ columns(b, b_lead, n)[:k]
        assert c_lead == m
        self.driver.memory[c.value][:] = np.ascontiguousarray(product.T).tobytes()
        return 0


def test_a_kernel_gets_its_pointers_in_the_order_of_its_parameters() -> None:
    driver = Driver()
    timed = Gpu(driver).run(SOURCE, CUBIN, SIZE)
    assert timed.wrong is None
    assert driver.launched == [(2, 3, 1, 16, 8, 1)] * (WARM + RUNS)
    assert timed.microseconds == pytest.approx(50 / RUNS)
    assert not driver.alive


def test_a_wrong_number_of_the_gpu_is_told() -> None:
    timed = Gpu(Driver(off=1)).run(SOURCE, CUBIN, SIZE)
    assert str(timed.wrong).startswith("12 of 12 elements are wrong")


def test_cublas_is_asked_for_the_product_by_columns() -> None:
    driver = Driver()
    assert Gpu(driver).run_cublas(Cublas(driver), SIZE).wrong is None
    assert not driver.alive


def test_the_gpu_says_what_to_compile_for() -> None:
    gpu = Gpu(Driver())
    assert (gpu.arch, gpu.name) == ("sm_90", "a GPU of the test")


def test_no_gpu_is_a_sentence() -> None:
    with pytest.raises(CudaError, match="no NVIDIA GPU here"):
        Gpu(Driver(devices=0))


@pytest.mark.parametrize("function", ["cuModuleLoadData", "cuMemAlloc_v2", "cuEventSynchronize"])
def test_what_the_driver_refuses_is_told_and_all_is_given_back(function: str) -> None:
    driver = Driver(refuses=function)
    with pytest.raises(CudaError, match=f"refuses {function}: error 999"):
        Gpu(driver).run(SOURCE, CUBIN, SIZE)
    assert not driver.alive
