"""Several kernels of a product of a symbolic extent, of which a launch takes one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te
from tvm.s_tir import Schedule
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.error import ArgumentError, ArgumentTypeError
from mfmadsl.schedule import Case, ScheduleError, Tiling
from mfmadsl.schedule.matrix_core import selection
from mfmadsl.schedule.matrix_core.tiling.cases import BORDERS, cases_of
from mfmadsl.schedule.matrix_core.tiling.cost import Estimate
from mfmadsl.schedule.matrix_core.tiling.fastest import fastest_of
from mfmadsl.schedule.workload.dense import product
from tests.schedule.matrix_core.gemm.test_edges import plain
from tests.schedule.random_workloads import RandomWorkload, check

TYPES = "float16", "float16", "float32"
SMALL = Tiling((16, 16), 64, (1, 1), "mfma_f32_16x16x16_f16", 2)
LARGE = Tiling((64, 32), 32, (2, 1), "mfma_f32_32x32x8_f16", 2)
SPLIT = replace(SMALL, split_k=2)
CASES = [Case(SMALL, (16, 40)), Case(SPLIT, (24,)), Case(LARGE)]
"""Up to 16 and from 25 to 40 small tiles, in between K in two parts, and then large ones."""


def with_epilogue(m: Any, n: int, k: int) -> PrimFunc:
    """C = A x B^T + float32(bias): the bias is cast in a block of its own."""
    a, b, c = product((m, n, k), TYPES, (False, True))
    bias = te.placeholder((n,), "float16", "bias")
    wide = te.compute((n,), lambda j: bias[j].astype("float32"), "wide")
    d = te.compute((m, n), lambda i, j: c[i, j] + wide[j], "D")
    return te.create_prim_func([a, b, bias, d])


def is_right(function: PrimFunc, cases: Sequence[Case] | None = None, **symbols: int) -> bool:
    def scheduled(workload: PrimFunc) -> Schedule:
        return mfmadsl.gemm_schedule(workload, tiling=cases)

    return check(RandomWorkload(0, function, symbols, (), True), scheduled, "gfx942")


@pytest.mark.parametrize("m", [1, 15, 16, 17, 24, 25, 40, 41, 70])
@pytest.mark.parametrize("write", [plain, with_epilogue])
def test_each_extent_is_right(write: Any, m: int) -> None:
    assert is_right(write(te.var("m"), 48, 256), CASES, m=m)


@pytest.mark.parametrize("n", [1, 16, 17, 41])
def test_a_symbolic_n(n: int) -> None:
    assert is_right(plain(32, te.var("n"), 256), CASES, n=n)


@pytest.mark.parametrize("k", [1, 16, 17, 41, 130])
def test_a_symbolic_k(k: int) -> None:
    assert is_right(plain(32, 48, te.var("k")), [Case(SMALL, (16,)), Case(LARGE)], k=k)


@pytest.mark.parametrize("s", [1, 8, 9, 20, 21])
def test_an_extent_of_twice_a_symbol(s: int) -> None:
    """TVM's own code for a CPU finds no such symbol: NumPy is asked."""
    workload = plain(2 * te.var("s"), 48, 256)
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, tiling=CASES))
    generator = np.random.default_rng(s)
    a, b = (generator.integers(-4, 5, (rows, 256)).astype(np.float16) for rows in (2 * s, 48))
    c = np.full((2 * s, 48), np.nan, np.float32)
    mfmadsl.sanitize(kernel, [a, b, c], unwritten=[2])
    np.testing.assert_array_equal(c, a.astype(float) @ b.astype(float).T)


@pytest.mark.parametrize("m", [1, 40, 300])
def test_those_that_are_chosen(m: int) -> None:
    assert is_right(plain(te.var("m"), 64, 192), None, m=m)


def launched(m: int) -> list[str]:
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(plain(te.var("m"), 48, 256), tiling=CASES))
    a, b, c = (np.zeros(s, d) for s, d in (((m, 256), "f2"), ((48, 256), "f2"), ((m, 48), "f4")))
    return [launch.symbol for launch in kernel.launches([a, b, c])]


@pytest.mark.thorough
def test_a_launch_takes_one() -> None:
    """K in two parts has a second kernel, which adds them up."""
    small, split, large = ["main_kernel"], ["main_kernel_1", "main_kernel_2"], ["main_kernel_3"]
    found = {m: launched(m) for m in (1, 16, 17, 24, 25, 40, 41, 1000)}
    expected = {1: small, 16: small, 17: split, 24: split, 25: small, 40: small, 41: large}
    assert found == {**expected, 1000: large}


def test_the_trace_replays_with_the_borders() -> None:
    workload = with_epilogue(te.var("m"), 48, 256)
    sch = mfmadsl.gemm_schedule(workload, tiling=CASES)
    again = Schedule(mfmadsl.with_cases(workload, len(CASES)))
    sch.trace.apply_to_schedule(again, remove_postproc=False)
    tvm.ir.assert_structural_equal(again.mod["main"].body, sch.mod["main"].body, True)
    assert "mfmadsl.case_up_to" in str(sch.trace)


def test_one_tiling_makes_one_kernel() -> None:
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(plain(te.var("m"), 48, 256), tiling=LARGE))
    assert kernel.next is None
    assert kernel.condition == 1


def test_among_blocks_of_ones_own() -> None:
    """`schedule_gemm` schedules a copy; what is no part of the product stays as it is."""
    m: Any = te.var("m")
    a, b, c = product((m, 32, 64), TYPES, (False, True))
    more = te.compute((m, 32), lambda i, j: c[i, j] + 1.0, "D")
    squares = te.compute((m, 64), lambda i, k: a[i, k] * a[i, k], "squares")
    workload = te.create_prim_func([a, b, more, squares])

    def scheduled(function: PrimFunc) -> Schedule:
        sch = Schedule(mfmadsl.with_cases(function, 2))
        for name, tiling in (("C_1", SMALL), ("C", LARGE)):
            mfmadsl.schedule_gemm(sch, sch.get_sblock(name), tiling=tiling)
        sch.annotate(sch.get_sblock("C_case_1"), "mfmadsl.case_up_to", [16])
        own = sch.fuse(*sch.get_loops(sch.get_sblock("squares")))
        group, thread = sch.split(own, [None, 64])
        sch.bind(group, "blockIdx.x")
        sch.bind(thread, "threadIdx.x")
        return sch

    for rows in (5, 17):
        assert check(RandomWorkload(0, workload, {"m": rows}, (), True), scheduled, "gfx942")


def test_what_is_a_result_of_its_own_is_computed_once() -> None:
    """Though the product alone reads it: no case has a copy of it."""
    m: Any = te.var("m")
    a, b, c = product((m, 48, 64), TYPES, (False, True))
    bias = te.placeholder((48,), "float16", "bias")
    wide = te.compute((48,), lambda j: bias[j].astype("float32"), "wide")
    d = te.compute(c.shape, lambda i, j: c[i, j] + wide[j], "D")
    sch = Schedule(mfmadsl.with_cases(te.create_prim_func([a, b, bias, wide, d]), 2))
    blocks = [str(sch.get(each).name_hint) for each in sch.get_child_blocks(sch.get_sblock("root"))]
    assert blocks == ["wide", "C_case_1", "C_case_2"]


@pytest.mark.parametrize(
    ("cases", "reason"),
    [
        ([], "each Case but the last"),
        ([Case(SMALL), Case(LARGE)], "each Case but the last"),
        ([Case(SMALL, (16,)), Case(LARGE, (16,))], "up_to of one Case only"),
        ([Case(SMALL, (0,)), Case(LARGE)], "a number from 1"),
    ],
)
def test_cases_that_leave_it_open_are_refused(cases: list[Case], reason: str) -> None:
    with pytest.raises(ArgumentError, match=reason):
        mfmadsl.gemm_schedule(plain(te.var("m"), 48, 256), tiling=cases)


def test_more_copies_than_anybody_compiles_are_refused() -> None:
    with pytest.raises(ArgumentError, match="at most 64, not 65"):
        mfmadsl.with_cases(plain(te.var("m"), 48, 256), 65)


def test_what_is_no_case_is_refused() -> None:
    for wrong in (["x"], "x", 7, [Case("x")], [Case(SMALL, "x"), Case(LARGE)]):  # type: ignore[arg-type]
        with pytest.raises(ArgumentTypeError):
            mfmadsl.gemm_schedule(plain(te.var("m"), 48, 256), tiling=wrong)  # type: ignore[arg-type]


def test_a_product_of_known_extents_has_none() -> None:
    with pytest.raises(ScheduleError, match="one of M, N and K is symbolic"):
        mfmadsl.gemm_schedule(plain(64, 48, 256), tiling=CASES)
    with pytest.raises(ScheduleError, match="one of M, N and K is symbolic"):
        mfmadsl.with_cases(plain(te.var("m"), te.var("n"), 256), 2)
    with pytest.raises(ScheduleError, match="give one Tiling"):
        mfmadsl.gemm_schedule(
            mfmadsl.scaled_matmul(64, 64, 128, "float8_e4m3fn"), arch="gfx950", tiling=CASES
        )


def test_a_part_of_k_that_is_symbolic_is_refused() -> None:
    with pytest.raises(ScheduleError, match="needs K to be known"):
        mfmadsl.gemm_schedule(plain(32, 48, te.var("k")), tiling=CASES)


def test_known_extents_have_one_tiling() -> None:
    workload = plain(64, 48, 256)
    assert mfmadsl.gemm_cases(workload) == [Case(mfmadsl.gemm_tiling(workload))]


class Table:
    """Estimates of three tilings: one for few rows, one for many, one that is never the best."""

    tilings = (SMALL, LARGE, replace(SMALL, block=(32, 16)))

    def of_one(self, extent: int, tiling: Tiling) -> Estimate:
        return Estimate({SMALL: extent, LARGE: 100 + extent / 2}.get(tiling, 500.0 + extent), 1.0)

    def estimated(self, extent: int) -> list[tuple[Estimate, Tiling]]:
        return [(self.of_one(extent, tiling), tiling) for tiling in self.tilings]


def test_the_choice_takes_the_fastest_for_each_extent() -> None:
    table = Table()
    few, many = cases_of(table.estimated, table.of_one, {})
    assert (few.tiling, many.tiling, many.up_to) == (SMALL, LARGE, ())
    (border,) = few.up_to
    assert border in BORDERS
    assert 192 <= border <= 224  # the times cross at 200, and 3 % are about the same


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_no_extent_between_powers_of_two_loses_much(
    arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At these the tiling of a power of two nearby takes 1.15 to 1.6 times the best one's time:
    tiles of other heights are a round of workgroups less."""
    asked: list[Any] = []

    def recorded(*arguments: Any) -> list[Case]:
        asked.extend(arguments)
        return cases_of(*arguments)

    monkeypatch.setattr(selection, "cases_of", recorded)
    cases = mfmadsl.gemm_cases(plain(te.var("m"), 4096, 4096), arch=arch)
    estimates, of_one, _ = asked
    borders = sorted((border, case.tiling) for case in cases for border in case.up_to)
    for m in (270, 587, 2073, 2144, 2295, 2821, 3078, 4375, 6109):
        taken = next((tiling for border, tiling in borders if m <= border), cases[-1].tiling)
        best = fastest_of(estimates(m))
        assert of_one(m, taken).seconds <= 1.12 * of_one(m, best).seconds, m


def test_what_was_tuned_goes_first() -> None:
    table = Table()
    slow = table.tilings[2]
    found = cases_of(table.estimated, table.of_one, {512: slow})
    assert [case.up_to for case in found if case.tiling == slow] == [(512,)]
