"""Random workloads, tilings and changes of schedules: right under the sanitizer, or refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm.s_tir import Schedule
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.schedule import ScheduleError, load_intrinsic, matmul
from mfmadsl.schedule.prepare import prepared
from tests.schedule.draw import SEVERAL_STEPS
from tests.schedule.drawn_changes import changed
from tests.schedule.drawn_tiling import drawn_tiling
from tests.schedule.random_workloads import RandomWorkload, check, random_workload
from tests.schedule.test_mfma import scheduled as mfma_scheduled

CHIPS = ("gfx942", "gfx950", "gfx942", "gfx950", "gfx942", "gfx950", "gfx90a", "gfx908")


def drawn(seed: int) -> tuple[RandomWorkload, np.random.Generator, str]:
    """A workload, what else is drawn for it, and a chip."""
    generator = np.random.default_rng(seed + 10**6)
    arch = CHIPS[int(generator.integers(len(CHIPS)))]
    return random_workload(seed, extents=SEVERAL_STEPS), generator, arch


def scheduled(function: PrimFunc, generator: np.random.Generator, arch: str) -> Schedule:
    """The project's own schedule, of a random tiling in some of the cases."""
    tiling = drawn_tiling(generator, function, arch) if generator.random() < 0.6 else None
    return mfmadsl.gemm_schedule(function, arch=arch, tiling=tiling)


@pytest.mark.parametrize("seed", range(320))
def test_workloads(seed: int) -> None:
    workload, generator, arch = drawn(seed)
    check(workload, lambda function: scheduled(function, generator, arch), arch)


@pytest.mark.parametrize("seed", range(1000, 1120))
def test_changed_schedules(seed: int) -> None:
    """Whatever primitives make of a schedule: it is right, or TVM or the passes refuse it."""
    workload, generator, arch = drawn(seed)
    said = list(workload.said)

    def schedule(function: PrimFunc) -> Schedule:
        sch, made = changed(scheduled(function, generator, arch), generator, 4)
        said.extend(made)
        return sch

    check(replace(workload, said=said, sound=False), schedule, arch)


@pytest.mark.parametrize("seed", range(24))
def test_changed_schedules_of_tvms_own_kind(seed: int) -> None:
    generator = np.random.default_rng(seed)
    half = mfmadsl.find("mfma_f32_16x16x16_f16")
    tile = load_intrinsic(half)
    function = matmul(128, 128, 64, tile.IN_DTYPE, tile.OUT_DTYPE)
    workload = RandomWorkload(seed, function, {}, (), False)
    check(workload, lambda _: changed(mfma_scheduled(half), generator, 4)[0])


@pytest.mark.parametrize("first", range(2000, 2100, 10))
def test_traces_are_all_that_a_schedule_is(first: int) -> None:
    """A trace, applied to what `prepared` makes of the workload, gives the same module."""
    for seed in range(first, first + 10):
        workload, generator, arch = drawn(seed)
        try:
            sch = scheduled(workload.function, generator, arch)
        except ScheduleError:
            continue
        function = prepared(workload.function).with_attr("global_symbol", "main")
        fresh = Schedule(tvm.IRModule({"main": function}))
        sch.trace.apply_to_schedule(fresh, remove_postproc=False)
        assert tvm_ffi.structural_equal(fresh.mod, sch.mod), seed
