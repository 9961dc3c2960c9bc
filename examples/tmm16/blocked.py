"""Blocked: the loops are cut into tiles of the unit, and a tile becomes a block of its own."""

from __future__ import annotations

from types import ModuleType

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV


def blocked(sch: Schedule, unit: ModuleType) -> tuple[SBlockRV, list[LoopRV]]:
    """(the block of one tile, the loops over tiles along M, N and K)."""
    i, j, k = sch.get_loops(sch.get_sblock("C"))
    i0, i1 = sch.split(i, [None, unit.M])
    j0, j1 = sch.split(j, [None, unit.N])
    k0, k1 = sch.split(k, [None, unit.K])
    sch.reorder(i0, j0, k0, i1, j1, k1)
    return sch.blockize(i1), [i0, j0, k0]
