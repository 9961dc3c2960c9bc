"""No kernel reads or writes anything but its arguments, wherever they lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from tvm import te, tirx

import mfmadsl
from mfmadsl import CpuKernel
from mfmadsl.backend.isolate import ProcessEndedError, run_isolated
from tests.backend.guarded import Array, banded, guarded
from tests.schedule.cpu.workloads import (
    HASWELL,
    MULTIPLIES_BYTES,
    Matmul,
    kernel_of,
    known,
    positions,
    tiling_of,
)

WORKLOADS = {
    "rows": Matmul(13, 37, 19),
    "columns": Matmul(13, 37, 19, rows=(False, False, False)),
    "A by columns": Matmul(13, 37, 19, rows=(False, True, True)),
    "B by columns": Matmul(13, 37, 19, rows=(True, False, True)),
    "float64": Matmul(9, 21, 11, "float64"),
    "batches": Matmul(5, 7, 3, batches=3),
    "whole tiles": Matmul(24, 64, 32),
    "one element": Matmul(1, 1, 1),
}
if MULTIPLIES_BYTES:
    WORKLOADS["bytes"] = Matmul(13, 37, 19, "uint8")
    WORKLOADS["bytes, B by columns"] = Matmul(13, 37, 19, "uint8", rows=(True, False, True))


def test_a_guarded_array_ends_the_process_of_who_reads_past_it() -> None:
    """The guard guards."""

    def past() -> float:
        with guarded(np.arange(8, dtype=np.float32)) as (array,):
            beyond = np.lib.stride_tricks.as_strided(array, (9,))
            return float(beyond[8])

    with pytest.raises(ProcessEndedError):
        run_isolated(past)


def touching_nothing_else(kernel: CpuKernel, operands: Sequence[Array]) -> list[Array]:
    """What becomes of the arguments, where nobody may touch what lies behind, and then before."""

    def run(before: bool) -> list[Array]:
        with guarded(*operands, before=before) as arrays:
            kernel(*arrays)
            return [array.copy() for array in arrays]

    behind, ahead = (run_isolated(partial(run, before)) for before in (False, True))
    for one, other in zip(behind, ahead, strict=True):
        np.testing.assert_array_equal(one, other)
    return behind


@pytest.mark.parametrize("name", WORKLOADS)
def test_nothing_is_read_or_written_beyond_the_arguments(name: str) -> None:
    workload = WORKLOADS[name]
    kernel = kernel_of(workload)

    workload.assert_right(*touching_nothing_else(kernel, workload.operands()))


@pytest.mark.parametrize("pack_a", [False, True])
@pytest.mark.parametrize("parallel", [False, True])
def test_nor_by_tilings_that_go_far_past_the_edge(parallel: bool, pack_a: bool) -> None:
    workload = Matmul(9, 35, 5)
    name = known("avx512_f32_4x32", "avx2_f32_6x16", "sse2_f32_6x8")
    kernel = kernel_of(workload, tiling=tiling_of(name, 5, 4, parallel=parallel, pack_a=pack_a))
    with guarded(*workload.operands()) as arrays:
        kernel(*arrays)
        workload.assert_right(*arrays)


def test_nor_by_masks_of_an_older_cpu() -> None:
    workload = Matmul(7, 21, 9)
    with guarded(*workload.operands()) as arrays:
        kernel_of(workload, cpu=HASWELL)(*arrays)
        workload.assert_right(*arrays)


@pytest.mark.parametrize("name", WORKLOADS)
def test_what_lies_around_c_stays(name: str) -> None:
    workload = WORKLOADS[name]
    a, b, c = workload.operands()
    with banded(c) as result:
        kernel_of(workload)(a, b, result)
        workload.assert_right(a, b, result)


@pytest.mark.parametrize("name", WORKLOADS)
def test_what_lies_around_a_and_b_does_not_matter(name: str) -> None:
    """Neighbours that are NaN, or large, reach no result by way of a padded lane."""
    workload = WORKLOADS[name]
    kernel = kernel_of(workload)
    found = []
    for filling in (0x00, 0xFF):  # 0xFF in each byte is a NaN
        operands = workload.operands()
        inside = []
        for array in operands:
            memory = np.full(array.nbytes + 8192, filling, np.uint8)
            copy = memory[4096 : 4096 + array.nbytes].view(array.dtype).reshape(array.shape)
            copy[...] = array
            inside.append(copy)
        kernel(*inside)
        workload.assert_right(*inside)
        found.append(inside[2].tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["rows", "columns", "float64", "whole tiles"])
@pytest.mark.parametrize("elements", [1, 3])
def test_arrays_begin_at_any_of_their_elements(name: str, elements: int) -> None:
    """NumPy's arrays lie at no multiple of a vector."""
    workload = WORKLOADS[name]
    inside = []
    for array in workload.operands():
        memory = np.zeros(array.size + 64, array.dtype)
        first = (-memory.ctypes.data // array.itemsize) % (64 // array.itemsize) + elements
        copy = memory[first : first + array.size].reshape(array.shape)
        assert copy.ctypes.data % 64 == elements * array.itemsize
        copy[...] = array
        inside.append(copy)
    kernel_of(workload)(*inside)
    workload.assert_right(*inside)


M, N, K = 13, 37, 19
SURROUNDED: dict[str, tuple[dict[str, tuple[int, ...]], Any, Any, Callable[..., Array]]] = {
    "rows of A that are scaled": (
        {"A": (M, K), "B": (N, K), "s": (M,)}, lambda x, i, k: x["A"][i, k] * x["s"][i], None,
        lambda a, b, s: (a * s[:, None]) @ b.T),
    "rows of B that are scaled": (
        {"A": (M, K), "B": (N, K), "s": (N,)}, None, lambda x, j, k: x["B"][j, k] * x["s"][j],
        lambda a, b, s: a @ (b * s[:, None]).T),
    "columns of A that are scaled": (
        {"A": (M, K), "B": (N, K), "s": (K,)}, lambda x, i, k: x["A"][i, k] * x["s"][k], None,
        lambda a, b, s: (a * s) @ b.T),
    "a shorter A": (
        {"A": (M - 3, K - 2), "B": (N, K)},
        lambda x, i, k: tirx.if_then_else(
            tirx.all(i >= 1, i < M - 2, k < K - 2), x["A"][i - 1, k], tirx.const(2, "float32")),
        None, lambda a, b: np.pad(a, ((1, 2), (0, 2)), constant_values=2) @ b.T),
    "a shorter B": (
        {"A": (M, K), "B": (N - 3, K - 2)}, None,
        lambda x, j, k: tirx.if_then_else(
            tirx.all(j >= 1, j < N - 2, k < K - 2), x["B"][j - 1, k], tirx.const(2, "float32")),
        lambda a, b: a @ np.pad(b, ((1, 2), (0, 2)), constant_values=2).T),
}  # fmt: skip


@pytest.mark.parametrize("name", SURROUNDED)
def test_what_a_factor_is_made_of_is_not_read_beyond_its_end(name: str) -> None:
    """Past an edge of C there are no rows of A, and no scales of them either."""
    shapes, of_a, of_b, wanted = SURROUNDED[name]
    given: dict[str, Any] = {n: te.placeholder(s, "float32", name=n) for n, s in shapes.items()}

    def factor(which: str, rows: int, function: Any) -> Any:
        if function is None:
            return given[which]
        return te.compute((rows, K), lambda i, k: function(given, i, k), name=f"{which}_made")

    a, b = factor("A", M, of_a), factor("B", N, of_b)
    r = te.reduce_axis((0, K), name="k")
    c = te.compute((M, N), lambda i, j: te.sum(a[i, r] * b[j, r], axis=[r]), name="C")
    scale = te.placeholder((M,), "float32", name="scale")
    bias = te.placeholder((N,), "float32", name="bias")
    d = te.compute((M, N), lambda i, j: c[i, j] * scale[i] + bias[j], name="D")
    kernel = mfmadsl.build_for_cpu(
        mfmadsl.cpu_gemm_schedule(te.create_prim_func([*given.values(), scale, bias, d]))
    )
    shapes_of_all = [*shapes.values(), (M,), (N,)]
    inputs = [(positions(shape, "float32") / 64).astype(np.float32) for shape in shapes_of_all]
    *_, result = touching_nothing_else(kernel, [*inputs, np.full((M, N), 77, np.float32)])
    *factors, scales, biases = (each.astype(np.float64) for each in inputs)
    expected = wanted(*factors) * scales[:, None] + biases
    assert np.abs(result - expected).max() <= 1e-4 * np.abs(expected).max()
