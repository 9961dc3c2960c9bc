"""What a kernel of this machine takes, and what it says of what it does not take."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
import tvm
from tvm import te

import mfmadsl
from mfmadsl import ArgumentError, ArgumentTypeError, CpuKernel
from mfmadsl.model.cpu import cpu

Array = npt.NDArray[Any]
M, N = 6, 10


@cache
def sums(dtype: str = "float32") -> CpuKernel:
    """C = A + B, and the row of the second argument."""
    a = te.placeholder((M, N), dtype, name="A")
    b = te.placeholder((N,), dtype, name="B")
    c = te.compute((M, N), lambda i, j: a[i, j] + b[j], name="C")
    return mfmadsl.build_for_cpu(te.create_prim_func([a, b, c]))


def operands(dtype: Any = np.float32) -> tuple[Array, Array, Array]:
    a = np.arange(M * N).reshape(M, N).astype(dtype)
    return a, (np.arange(N) * 100).astype(dtype), np.full((M, N), 7, dtype)


def right(a: Array, b: Array, c: Array) -> None:
    np.testing.assert_array_equal(c, a + b)


def test_it_says_what_it_takes_and_what_it_writes() -> None:
    kernel = sums()
    assert [(x.name, x.dtype, x.shape) for x in kernel.arguments] == [
        ("A", "float32", (M, N)), ("B", "float32", (N,)), ("C", "float32", (M, N)),
    ]  # fmt: skip
    assert kernel.outputs == {"C"}
    assert f"@{kernel.symbol}" in kernel.llvm_ir.replace("__tvm_ffi_", "")
    assert kernel.symbol in kernel.assembly
    assert "assembly" not in repr(kernel)


@pytest.mark.parametrize("spoiled", [False, True])
def test_a_thread_keeps_its_cores_when_tvm_makes_its_workers(
    spoiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine of two cores, whichever this is."""
    cores = {0, 1}
    had, bound = [cores], []

    def run(*arrays: object) -> None:
        if os.sched_getaffinity(0) == cores:  # as TVM does once in a thread
            os.sched_setaffinity(0, {min(cores)})
            bound.append(arrays)
        if spoiled:
            raise RuntimeError("spoiled")

    workload = mfmadsl.matmul(M, N, 8, "float32", "float32")
    tiling = replace(mfmadsl.cpu_gemm_tiling(workload), parallel=True)
    kernel = mfmadsl.build_for_cpu(mfmadsl.cpu_gemm_schedule(workload, tiling=tiling))
    arrays = [np.zeros(shape, np.float32) for shape in ((M, 8), (8, N), (M, N))]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: had[-1], raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, own: had.append(own), raising=False)

    def called() -> set[int]:
        with suppress(RuntimeError):
            replace(kernel, run=run)(*arrays)
        return os.sched_getaffinity(0)

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(called).result() == cores
    assert len(bound) == 1
    assert had == [cores, {0}, cores]


def test_arrays_of_numpy() -> None:
    a, b, c = operands()
    sums()(a, b, c)
    right(a, b, c)


def test_arrays_of_another_library() -> None:
    a, b, c = operands()
    there = tvm.runtime.tensor(c)
    sums()(tvm.runtime.tensor(a), b, there)
    right(a, b, there.numpy())


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "int64", "float64"])
def test_arrays_of_each_type(dtype: str) -> None:
    a, b, c = operands(getattr(ml_dtypes, dtype, dtype))
    a, b = (a % 8).astype(c.dtype), (b % 7).astype(c.dtype)
    sums(dtype)(a, b, c)
    right(a, b, c)


def test_inputs_may_be_read_only() -> None:
    a, b, c = operands()
    a.setflags(write=False)
    b.setflags(write=False)
    sums()(a, b, c)
    right(a, b, c)


def test_inputs_may_be_one_array() -> None:
    a = te.placeholder((N,), "float32", name="A")
    b = te.placeholder((N,), "float32", name="B")
    c = te.compute((N,), lambda i: a[i] - b[i] * 2.0, name="C")
    kernel = mfmadsl.build_for_cpu(te.create_prim_func([a, b, c]))
    x, y = np.arange(N, dtype=np.float32), np.full(N, 7, np.float32)
    kernel(x, x, y)
    np.testing.assert_array_equal(y, -x)


def refused(kernel: CpuKernel, arrays: tuple[Any, ...], message: str) -> None:
    """Refused with the message, and nothing is written."""
    held = [np.asarray(x).copy() for x in arrays if isinstance(x, np.ndarray)]
    with pytest.raises(ArgumentError) as error:
        kernel(*arrays)
    assert str(error.value) == message
    for before, now in zip(held, [x for x in arrays if isinstance(x, np.ndarray)], strict=True):
        np.testing.assert_array_equal(before, now)


def test_another_number_of_arrays() -> None:
    a, b, c = operands()
    refused(sums(), (), "main: takes A, B, C, not 0 arrays")
    refused(sums(), (a, b), "main: takes A, B, C, not 2 arrays")
    refused(sums(), (a, b, c, c.copy()), "main: takes A, B, C, not 4 arrays")


@pytest.mark.parametrize("shape", [(N, M), (M * N,), (M, N, 1), (M, N - 1), (M + 1, N), (0, N)])
def test_another_shape(shape: tuple[int, ...]) -> None:
    a, b, c = operands()
    refused(sums(), (np.zeros(shape, np.float32), b, c), f"A: has shape {shape}, not (6, 10)")
    refused(sums(), (a, b, np.zeros(shape, np.float32)), f"C: has shape {shape}, not (6, 10)")


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint32", "float16", "bfloat16", "object"])
def test_another_type(dtype: str) -> None:
    a, b, c = operands()
    other = a.astype(getattr(ml_dtypes, dtype, dtype))
    refused(sums(), (other, b, c), f"A: has elements of {other.dtype}, not float32")


def test_the_other_order_of_bytes() -> None:
    a, b, c = operands()
    swapped = a.astype(">f4")
    refused(sums(), (swapped, b, c), "A: has elements of >f4, not float32")


STRIDED: dict[str, Callable[[], Array]] = {
    "every other column": lambda: np.zeros((M, 2 * N), np.float32)[:, ::2],
    "a part of longer rows": lambda: np.zeros((M, N + 1), np.float32)[:, :N],
    "by columns": lambda: np.zeros((N, M), np.float32).T,
    "backwards": lambda: np.zeros((M, N), np.float32)[::-1],
    "one row again and again": lambda: np.broadcast_to(np.zeros(N, np.float32), (M, N)),
}


@pytest.mark.parametrize("name", STRIDED)
def test_elements_that_do_not_lie_one_after_another(name: str) -> None:
    a, b, c = operands()
    odd = STRIDED[name]()
    message = (
        "its elements must lie one after another, but it has strides of"
        f" {odd.strides} bytes: np.ascontiguousarray makes a copy that does"
    )
    refused(sums(), (odd, b, c), f"A: {message}")
    refused(sums(), (a, b, odd), f"C: {message}")
    copy = np.ascontiguousarray(odd)
    sums()(copy, b, c)
    right(copy, b, c)


def test_strides_that_no_step_takes_do_not_matter() -> None:
    """An axis of one element may have any stride."""
    a = te.placeholder((1, N), "float32", name="A")
    c = te.compute((1, N), lambda i, j: a[i, j] + 1.0, name="C")
    kernel = mfmadsl.build_for_cpu(te.create_prim_func([a, c]))
    x = np.arange(3 * N, dtype=np.float32).reshape(3, N)[1::2]
    y = np.zeros((1, N), np.float32)
    kernel(x, y)
    np.testing.assert_array_equal(y, x + 1)


def test_an_element_that_begins_at_an_odd_byte() -> None:
    a, b, c = operands()
    memory = np.zeros(a.nbytes + 1, np.uint8)
    odd = memory[1:].view(np.float32).reshape(M, N)
    refused(sums(), (odd, b, c), "A: begins in the middle of an element: copy it")
    refused(sums(), (a, b, odd), "C: begins in the middle of an element: copy it")


@pytest.mark.parametrize("first", [0, N - 1, N, M * N - 1])
def test_a_result_over_a_factor(first: int) -> None:
    """All of it, a row of it, or one element."""
    memory = np.zeros(2 * M * N, np.float32)
    a, c = (memory[at : at + M * N].reshape(M, N) for at in (0, first))
    b = operands()[1]
    refused(
        sums(), (a, b, c), "C: is an output and shares memory with A: give it an array of its own"
    )
    apart = memory[M * N :].reshape(M, N)
    sums()(a, b, apart)
    right(a, b, apart)


def test_a_result_over_a_factor_of_another_library() -> None:
    a, b, _ = operands()
    there = tvm.runtime.tensor(a)
    refused(
        sums(), (there, b, there),
        "C: is an output and shares memory with A: give it an array of its own",
    )  # fmt: skip


def test_a_result_that_is_read_only() -> None:
    a, b, c = operands()
    c.setflags(write=False)
    refused(sums(), (a, b, c), "C: is an output, but the array is read-only")


@pytest.mark.parametrize("value", [None, 3, "A", [[1.0]], object], ids=str)
def test_what_is_no_array(value: object) -> None:
    a, b, c = operands()
    with pytest.raises(ArgumentTypeError, match="A: is no array of this machine's memory"):
        sums()(value, b, c)
    with pytest.raises(ArgumentTypeError, match="C: is no array of this machine's memory"):
        sums()(a, b, value)


def test_code_for_another_cpu_can_be_read_and_not_run() -> None:
    a, b, c = operands()
    x = te.placeholder((N,), "float32", name="A")
    y = te.compute((N,), lambda i: x[i] + 1.0, name="C")
    there = mfmadsl.build_for_cpu(te.create_prim_func([x, y]), cpu("sapphirerapids"))
    if there.run is not None:
        pytest.skip("this CPU has all that a Sapphire Rapids has")
    assert there.cpu == "sapphirerapids"
    assert "vaddps" in there.assembly
    refused(
        there,
        (a[0].copy(), b.copy()),
        "main: is code for sapphirerapids, which this CPU cannot run",
    )
    assert c.any()
