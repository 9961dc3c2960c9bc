"""No kernel reads or writes anything but its arguments, wherever they lie."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.backend.isolate import ProcessEndedError, run_isolated
from tests.backend.guarded import Array, banded, guarded
from tests.schedule.cpu_gemm.workloads import (
    HASWELL,
    RUN_HERE,
    Matmul,
    kernel_of,
    known,
    tiling_of,
)

VNNI = any(name.startswith("vnni") for name in RUN_HERE)
WORKLOADS = {
    "rows": Matmul(13, 37, 19),
    "columns": Matmul(13, 37, 19, a_rows=False, b_rows=False, c_rows=False),
    "A by columns": Matmul(13, 37, 19, a_rows=False),
    "B by columns": Matmul(13, 37, 19, b_rows=False),
    "float64": Matmul(9, 21, 11, "float64"),
    "batches": Matmul(5, 7, 3, batches=3),
    "whole tiles": Matmul(24, 64, 32),
    "one element": Matmul(1, 1, 1),
    **({"bytes": Matmul(13, 37, 19, "uint8"),
        "bytes, B by columns": Matmul(13, 37, 19, "uint8", b_rows=False)} if VNNI else {}),
}  # fmt: skip


def test_a_guarded_array_ends_the_process_of_who_reads_past_it() -> None:
    """The guard guards."""

    def past() -> float:
        with guarded(np.arange(8, dtype=np.float32)) as (array,):
            beyond = np.lib.stride_tricks.as_strided(array, (9,))
            return float(beyond[8])

    with pytest.raises(ProcessEndedError):
        run_isolated(past)


@pytest.mark.parametrize("name", WORKLOADS)
def test_nothing_is_read_or_written_beyond_the_arguments(name: str) -> None:
    workload = WORKLOADS[name]
    kernel = kernel_of(workload)

    def run(before: bool) -> list[Array]:
        with guarded(*workload.operands(), before=before) as arrays:
            kernel(*arrays)
            return [array.copy() for array in arrays]

    for before in (False, True):
        workload.assert_right(*run_isolated(lambda at=before: run(at)))


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
