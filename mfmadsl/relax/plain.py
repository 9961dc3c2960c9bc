"""Functions with a sum of one element, which dlight's last rule computes wrongly.

TVM 0.27 folds what follows such a sum into it, so that a bias is added at its start and once more
with its element. Here each block stays by itself, a kernel of its own.
"""

from __future__ import annotations

import tvm
from tvm import s_tir
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx import IntImm, IterVar, PrimFunc

_THREADS = 256
_ROOT = "root"


def plain_schedule(function: PrimFunc) -> Schedule | None:
    """Threads over each block's elements, whose sums they add up alone; None for a function without
    a sum of one element."""
    sch = s_tir.Schedule(tvm.IRModule({"main": function}))
    blocks = list(sch.get_child_blocks(sch.get_sblock(_ROOT)))
    if not any(_sums_one(sch, block) for block in blocks):
        return None
    for block in blocks:
        _bind(sch, block)
    return sch


def _sums_one(sch: Schedule, block: SBlockRV) -> bool:
    reduced = [each for each in sch.get(block).iter_vars if _is_reduced(each)]
    return bool(reduced) and all(
        isinstance(each.dom.extent, IntImm) and int(each.dom.extent) == 1 for each in reduced
    )


def _is_reduced(axis: IterVar) -> bool:
    return int(axis.iter_type) == IterVar.CommReduce


def _bind(sch: Schedule, block: SBlockRV) -> None:
    """Threads over the axes that are not summed over; zeros before the sum."""
    if not sch.get_loops(block):
        sch.add_unit_loop(block)
    axes = list(sch.get(block).iter_vars)
    loops = list(sch.get_loops(block))
    # A block without axes has one loop, of one iteration.
    own, summed = _parted(axes, loops) if len(axes) == len(loops) else (loops, [])
    if not own:
        own = [sch.add_unit_loop(loops[0])]
    sch.reorder(*own, *summed)
    along_grid, along_group = sch.split(sch.fuse(*own), [None, _THREADS])
    sch.bind(along_grid, "blockIdx.x")
    sch.bind(along_group, "threadIdx.x")
    if summed:
        sch.decompose_reduction(block, summed[0])


def _parted(axes: list[IterVar], loops: list[LoopRV]) -> tuple[list[LoopRV], list[LoopRV]]:
    """The loops of elements, and those of sums."""
    pairs = list(zip(axes, loops, strict=True))
    own = [loop for axis, loop in pairs if not _is_reduced(axis)]
    return own, [loop for axis, loop in pairs if _is_reduced(axis)]
