"""Loops that have the loads of two iterations in flight: right for any number of iterations."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mfmadsl
from mfmadsl.emulator.profiler.main_loop import loop_instructions
from mfmadsl.passes.main_loop.analysis.register_use import MANY_ITERATIONS
from tests.schedule.matrix_core.gemm.workloads import Workload

STEP = 32
TILING = mfmadsl.Tiling((32, 32), STEP, (2, 2), "mfma_f32_16x16x16_f16", 1)


def built(workload: Workload, arch: str) -> mfmadsl.Kernel:
    schedule = mfmadsl.gemm_schedule(workload.function(), arch=arch, tiling=TILING)
    return mfmadsl.build(schedule, arch)


@pytest.mark.parametrize("arch", ["gfx908", "gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("iterations", range(MANY_ITERATIONS - 1, MANY_ITERATIONS + 5))
@pytest.mark.parametrize("short", [0, 1, 2, STEP - 1])
@pytest.mark.parametrize(("a_rows", "b_rows"), [(True, True), (False, False)])
def test_any_number_of_iterations(
    arch: str, iterations: int, short: int, a_rows: bool, b_rows: bool
) -> None:
    """Of which the last may be short. What one multiplies is not what its neighbours do."""
    m, n, k = 40, 33, iterations * STEP - short
    workload = Workload(m, n, k, a_rows=a_rows, b_rows=b_rows)
    kernel = built(workload, arch)
    a = (np.arange(m)[:, None] % 3 + np.arange(k) % 7 - 4).astype(np.float16)
    b = (np.arange(n)[:, None] % 5 - np.arange(k) % 11 + 3).astype(np.float16)
    c = np.full((m, n), np.nan, np.float32)
    given = [a if a_rows else np.ascontiguousarray(a.T), b if b_rows else np.ascontiguousarray(b.T)]
    mfmadsl.sanitize(kernel, [*given, c])
    np.testing.assert_array_equal(c, a.astype(float) @ b.T.astype(float))


def test_loads_of_two_iterations_are_waited_for_one_by_one() -> None:
    """Where one's tile is put, the other's loads, of A and B, are under way."""
    kernel = built(Workload(64, 64, 100 * STEP), "gfx942")
    turn = loop_instructions(kernel.assembly)
    waits = [re.search(r"vmcnt\((\d+)\)", each.text) for each in turn]
    left = [int(wait[1]) for wait in waits if wait]
    assert min(left) >= 2
