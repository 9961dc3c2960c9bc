"""Decomposed: zeros are put into the sums ahead of the steps along K, so that a step only adds."""

from __future__ import annotations

from types import ModuleType

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from examples.tmm16.scopes import scoped


def decomposed(sch: Schedule, unit: ModuleType) -> tuple[SBlockRV, list[LoopRV]]:
    """What is left in the loop over K is the unit's own C[i, j] += A[i, k] * B[j, k]."""
    tile, loops = scoped(sch, unit)
    *_, k0 = loops
    sch.decompose_reduction(tile, k0)
    return tile, loops
