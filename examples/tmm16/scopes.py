"""Special scopes: tiles are brought to where the unit takes them, and its sums are fetched."""

from __future__ import annotations

from types import ModuleType

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from examples.tmm16.blocked import blocked


def scoped(sch: Schedule, unit: ModuleType) -> tuple[SBlockRV, list[LoopRV]]:
    """A and B come for each step along K; C goes back when all steps are done."""
    tile, loops = blocked(sch, unit)
    _, j0, k0 = loops
    for operand, scope in enumerate((unit.A_SCOPE, unit.B_SCOPE)):
        sch.compute_at(sch.cache_read(tile, operand, scope), k0)
    sch.reverse_compute_at(sch.cache_write(tile, 0, unit.C_SCOPE), j0)
    return tile, loops
