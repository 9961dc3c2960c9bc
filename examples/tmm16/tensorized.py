"""Tensorized: the loops of a tile become one call of the unit."""

from __future__ import annotations

from types import ModuleType

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from examples.tmm16.decomposed import decomposed
from examples.tmm16.unit import micro_kernel


def tensorized(sch: Schedule, unit: ModuleType) -> tuple[SBlockRV, list[LoopRV]]:
    """TVM compares the tile with the TensorIntrin's description: another loop nest is refused.

    The C function comes into the module as LLVM IR.
    """
    tile, loops = decomposed(sch, unit)
    inner = sch.get_loops(sch.get_sblock("C"))[-3]
    sch.tensorize(inner, unit.COMPUTE)
    code = micro_kernel(unit.M, unit.N, unit.K, unit.FUNCTION)
    sch.annotate(loops[0], "pragma_import_llvm", code)
    return tile, loops
