"""`schedule_gemm` on one block of a schedule: what it takes along, and what it leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm import te, tirx
from tvm.s_tir import Schedule

import mfmadsl
from mfmadsl.error import ArgumentTypeError
from mfmadsl.schedule import schedule_gemm
from tests.schedule.matrix_core.gemm.workloads import Workload, with_epilogue

M, N, K = 200, 128, 96
PRODUCT = Workload(M, N, K)


def row_sum(c: Any) -> Any:
    r = te.reduce_axis((0, N), name="r")
    return te.compute((M,), lambda i: te.sum(c[i, r], axis=[r]), name="S")


def relu(c: Any) -> Any:
    return te.compute((M, N), lambda i, j: tirx.max(c[i, j], tirx.const(0.0, "float32")), name="R")


def centred(c: Any) -> Any:
    total = row_sum(c)
    return te.compute((M, N), lambda i, j: c[i, j] * 128.0 - total[i], name="D")


AFTER: dict[str, tuple[Callable[[Any], Any], list[str], Callable[[Any], Any]]] = {
    "a sum": (row_sum, ["S"], lambda c: c.sum(1)),
    "a sum of what follows": (lambda c: row_sum(relu(c)), ["S"], lambda c: np.maximum(c, 0).sum(1)),
    "a sum, and both": (centred, ["S", "D"], lambda c: c * 128 - c.sum(1)[:, None]),
}


def rows_in_a_kernel(sch: Schedule, name: str) -> None:
    group, thread = sch.split(sch.get_loops(sch.get_sblock(name))[0], [None, 64])
    sch.bind(group, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("case", AFTER)
def test_what_is_no_part_of_it_is_left(case: str, first: bool) -> None:
    after, names, expected = AFTER[case]
    sch = Schedule(with_epilogue(PRODUCT, after, {}))
    if first:
        schedule_gemm(sch, sch.get_sblock("C"))
    for name in names:
        rows_in_a_kernel(sch, name)
    if not first:
        schedule_gemm(sch, sch.get_sblock("C"))
    generator = np.random.default_rng(5)
    x, y = (generator.integers(-3, 4, (e, K)).astype(np.float16) for e in (M, N))
    wanted = expected(x.astype(np.float64) @ y.astype(np.float64).T)
    found = np.full(wanted.shape, 99, np.float32)
    assert not mfmadsl.sanitize(mfmadsl.build(sch), [x, y, found]).faults
    np.testing.assert_array_equal(found, wanted)


def test_two_products_after_each_other() -> None:
    """The first is a kernel of its own with what follows it, and not inlined into the second."""
    r = te.reduce_axis((0, N), name="r")

    def second(c: Any, e: Any) -> Any:
        half = te.compute((M, N), lambda i, j: tirx.max(c[i, j], 0.0).astype("float16"), name="H")
        return te.compute(
            (M, 64),
            lambda i, j: te.sum(half[i, r].astype("float32") * e[j, r].astype("float32"), axis=[r]),
            name="D",
        )

    sch = Schedule(with_epilogue(PRODUCT, second, {"E": ((64, N), "float16")}))
    for name in "CD":
        schedule_gemm(sch, sch.get_sblock(name))
    kernel = mfmadsl.build(sch)
    assert [each.remarks for each in kernel.chain()] == [(), ()]
    generator = np.random.default_rng(7)
    x, y = (generator.integers(-2, 3, (rows, K)).astype(np.float16) for rows in (M, N))
    z, found = generator.integers(-2, 3, (64, N)).astype(np.float16), np.zeros((M, 64), np.float32)
    assert not mfmadsl.sanitize(kernel, [x, y, z, found]).faults
    first = np.maximum(x.astype(np.float64) @ y.astype(np.float64).T, 0)
    np.testing.assert_array_equal(found, first @ z.astype(np.float64).T)


def test_what_is_no_block_of_a_schedule() -> None:
    sch: Any = Schedule(PRODUCT.function())
    block = sch.get_sblock("C")
    name: Any = "C"
    with pytest.raises(ArgumentTypeError, match="block: is a block of the schedule"):
        schedule_gemm(sch, name)
    with pytest.raises(ArgumentTypeError, match="block: is a block of the schedule"):
        schedule_gemm(sch, sch.get_loops(block)[0])
    with pytest.raises(ArgumentTypeError, match="sch: is a Schedule"):
        schedule_gemm(sch.mod, block)
