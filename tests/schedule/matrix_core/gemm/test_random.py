"""Random workloads, tilings and changes of schedules: right under the sanitizer, or refused.

A number stands for each of them: MFMADSL_FIRST=5000 takes those from there on, not the usual ones.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm.s_tir import Schedule
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.passes.kernel.cases import case_in
from mfmadsl.passes.tir.block import statements
from mfmadsl.schedule import ScheduleError, load_intrinsic, matmul
from mfmadsl.schedule.product.prepare import prepared
from tests.cases import FIRST
from tests.schedule.draw import SEVERAL_STEPS
from tests.schedule.drawn_changes import changed
from tests.schedule.drawn_tiling import drawn_tiling
from tests.schedule.matrix_core.test_mfma import scheduled as mfma_scheduled
from tests.schedule.random_workloads import RandomWorkload, check, random_workload

CHIPS = ("gfx942", "gfx950", "gfx942", "gfx950", "gfx942", "gfx950", "gfx90a", "gfx908")
WORKLOADS = range(FIRST + 300, FIRST + 600)
CHANGED = range(FIRST + 1000, FIRST + 1100)
TRACES = range(FIRST + 2000, FIRST + 2040)


def drawn(seed: int) -> tuple[RandomWorkload, np.random.Generator, str]:
    """A workload, what else is drawn for it, and a chip."""
    generator = np.random.default_rng(seed + 10**6)
    arch = CHIPS[int(generator.integers(len(CHIPS)))]
    workload = random_workload(seed, extents=SEVERAL_STEPS)
    return replace(workload, said=[f"workload {seed}", *workload.said]), generator, arch


def scheduled(function: PrimFunc, generator: np.random.Generator, arch: str) -> Schedule:
    """The project's own schedule, of a random tiling in some of the cases."""
    tiling = drawn_tiling(generator, function, arch) if generator.random() < 0.6 else None
    return mfmadsl.gemm_schedule(function, arch=arch, tiling=tiling)


def checked(seed: int) -> bool:
    """Whether a workload was scheduled, which is right then; otherwise it was refused."""
    workload, generator, arch = drawn(seed)
    return check(workload, lambda function: scheduled(function, generator, arch), arch)


def changed_checked(seed: int) -> bool:
    """The same of a schedule that was changed by other primitives."""
    workload, generator, arch = drawn(seed)
    said = list(workload.said)

    def schedule(function: PrimFunc) -> Schedule:
        sch, made = changed(scheduled(function, generator, arch), generator, 4)
        said.extend(made)
        return sch

    return check(replace(workload, said=said, sound=False), schedule, arch)


@pytest.mark.parametrize("seed", WORKLOADS)
def test_workloads(seed: int) -> None:
    checked(seed)


def test_most_workloads_have_to_be_scheduled() -> None:
    assert sum(drawn(seed)[0].sound for seed in WORKLOADS) > 0.7 * len(WORKLOADS)


@pytest.mark.parametrize("first", CHANGED[::10])
def test_changed_schedules(first: int) -> None:
    """Whatever primitives make of a schedule: it is right, or TVM or the passes refuse it."""
    assert sum(changed_checked(seed) for seed in range(first, first + 10)) >= 4


@pytest.mark.parametrize("seed", range(12))
def test_changed_schedules_of_tvms_own_kind(seed: int) -> None:
    generator = np.random.default_rng(seed)
    half = mfmadsl.find("mfma_f32_16x16x16_f16")
    tile = load_intrinsic(half)
    function = matmul(128, 128, 64, tile.IN_DTYPE, tile.OUT_DTYPE)
    workload = RandomWorkload(seed, function, {}, (), False)
    check(workload, lambda _: changed(mfma_scheduled(half), generator, 4)[0])


@pytest.mark.parametrize("first", TRACES[::20])
def test_traces_are_all_that_a_schedule_is(first: int) -> None:
    """A trace, applied to what `prepared` makes of the workload, gives the same module."""
    compared = 0
    for seed in range(first, first + 20):
        workload, generator, arch = drawn(seed)
        try:
            sch = scheduled(workload.function, generator, arch)
        except ScheduleError:
            continue
        cases = [s for s in statements(sch.mod["main"]) if case_in(s) is not None]
        given = workload.function
        function = mfmadsl.with_cases(given, len(cases)) if cases else prepared(given)
        function = function.with_attr("global_symbol", "main")
        fresh = Schedule(tvm.IRModule({"main": function}))
        sch.trace.apply_to_schedule(fresh, remove_postproc=False)
        assert tvm_ffi.structural_equal(fresh.mod, sch.mod), seed
        compared += 1
    assert compared >= 10
