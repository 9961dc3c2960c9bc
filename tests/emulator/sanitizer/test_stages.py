"""Faults planted in loops whose loads go straight into the LDS, several turns ahead, are caught.

Such a loop waits for counts, never for all; so a wait that counts one too many, and a barrier that
is not there, are what could go wrong unseen.
"""

from __future__ import annotations

from functools import cache

import pytest

from mfmadsl.backend import Kernel, build
from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.sanitizer import sanitize
from mfmadsl.schedule import Tiling, gemm_schedule
from tests.emulator.sanitizer.late import emulate_late
from tests.emulator.sanitizer.mutants import Mutant, mutants
from tests.schedule.matrix_core.gemm.workloads import Workload

BUDGET = 50_000
KINDS = ("wait weakened", "wait dropped", "barrier dropped")


def workload(stages: int, b_rows: bool) -> Workload:
    """One round of the loop, and what is peeled of it."""
    return Workload(128, 128, 64 * (2 * stages + 1), b_rows=b_rows)


@cache
def kernel(stages: int, b_rows: bool) -> Kernel:
    tiling = Tiling((128, 128), 64, (2, 2), "mfma_f32_32x32x16_f16", 1, stages=stages)
    function = workload(stages, b_rows).function()
    return build(gemm_schedule(function, arch="gfx950", tiling=tiling), "gfx950")


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("b_rows", [True, False])
def test_it_is_right_on_the_late_chip(stages: int, b_rows: bool) -> None:
    shape = workload(stages, b_rows)
    for seed in range(2):
        a, b, c = shape.operands()
        emulate_late(kernel(stages, b_rows), [a, b, c], seed, BUDGET)
        assert shape.error(a, b, c) <= 1


@pytest.mark.parametrize("share", range(4))
@pytest.mark.parametrize(("stages", "b_rows"), [(2, True), (2, False), (3, True)])
def test_no_fault_escapes(stages: int, b_rows: bool, share: int) -> None:
    shape, right = workload(stages, b_rows), kernel(stages, b_rows)
    planted = [m for m in mutants(right) if m.kind in KINDS]
    escaped = [m for m in planted[share::4] if not is_caught(m, shape)]
    # The first barrier lets all waves load their first tile before any loads its second.
    first = next(m for m in planted if m.kind == "barrier dropped")
    assert [str(m) for m in escaped if m is not first] == []


def is_caught(mutant: Mutant, shape: Workload) -> bool:
    try:
        sanitize(mutant, list(shape.operands()), budget=BUDGET)
    except EmulationError:
        return True
    return False
