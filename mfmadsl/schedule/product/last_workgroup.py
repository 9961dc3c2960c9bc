"""The sums of a split K, scheduled so that the last workgroup of a tile may make them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tvm import tirx
from tvm.s_tir import SBlockRealize, Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx import IterVar

from mfmadsl.passes.kernel.last_workgroup import LAST_WORKGROUP
from mfmadsl.passes.tir.expression import constant
from mfmadsl.passes.tir.walk import walk
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.epilogue import fold_forward, reads_plainly
from mfmadsl.schedule.product.nest import nest_of

_MOST_TOGETHER = 4  # elements that a lane loads at once of a part
_MOST_UNROLLED = 16  # parts, whose loads are on their way at once


NEEDS_ALL_OF_C = (
    "tiling: one_launch: what follows the product reads C at other places than it writes, or makes"
    " several results of it: that takes a second launch"
)
"""Why the last workgroup of a tile cannot do all that is to be done."""


@dataclass(frozen=True)
class CutTotal:
    """The grid of the first kernel: a tile [s, i, j] of C, and (waves, lanes) of a workgroup."""

    tile: tuple[int, int, int]
    threads: tuple[int, int]


def fold_into_last(sch: Schedule, total: SBlockRV, cut: CutTotal) -> None:
    """The kernel after a product split along K, by the tiles of the product: `total` adds up the
    parts where the last block after it needs them.

    Raises ScheduleError where what comes after reads C elsewhere: that needs all of it.
    """
    last = fold_forward(sch, total)
    if len(last) != 1 or not reads_plainly(sch, total, last[0]):
        raise ScheduleError(NEEDS_ALL_OF_C)
    (block,) = last
    loops = _loops_of_axes(sch, total, block)
    rows = constant(sch.get(loops[1]).extent) or 0  # TVM annotates with numbers
    outer: list[LoopRV] = []
    inner: list[LoopRV] = []
    extents: list[int] = []
    for loop, size in zip(loops, cut.tile, strict=True):
        extent = sch.get(loop).extent
        # Of a matrix that is smaller than a tile no thread looks at rows that are not there.
        within = min(size, int(extent)) if isinstance(extent, tirx.IntImm) else size
        one, another = sch.split(loop, [None, within])
        outer.append(one)
        inner.append(another)
        extents.append(within)
    sch.reorder(*outer, *inner)
    for loop, tag in zip(outer, ("blockIdx.z", "blockIdx.y", "blockIdx.x"), strict=True):
        sch.bind(loop, tag)
    width = _together(extents, prod(cut.threads))
    inner[-1], several = sch.split(inner[-1], [None, width])
    turn, wave, lane = sch.split(sch.fuse(*inner), [None, *cut.threads])
    sch.bind(wave, "threadIdx.y")
    sch.bind(lane, "threadIdx.x")
    sch.reorder(wave, lane, turn, several)
    sch.set_scope(total, 0, "local")
    sch.compute_at(total, turn)
    parts, elements = _parts_first(sch, total, turn)
    for each in (several, *elements):
        sch.unroll(each)
    count = sch.get(parts).extent
    if isinstance(count, tirx.IntImm) and int(count) <= _MOST_UNROLLED:
        sch.unroll(parts)
    sch.annotate(total, LAST_WORKGROUP, rows)


def _together(extents: list[int], threads: int) -> int:
    """How many neighbours of a row a thread takes at once, such that all threads have some."""
    width = _MOST_TOGETHER
    while width > 1 and (extents[-1] % width or prod(extents) < threads * width):
        width //= 2
    return width


def _parts_first(
    sch: Schedule, total: SBlockRV, turn: LoopRV
) -> tuple[LoopRV, list[LoopRV]]:  # fmt: skip
    """The loop over the parts of what a thread's turn needs, and those over its elements inside."""
    found: list[SBlockRealize] = []
    walk(sch.get(turn), (SBlockRealize, found.append))
    block = sch.get(total)
    realize = next(each for each in found if each.block.same_as(block))
    of_parts = [
        value
        for axis, value in zip(block.iter_vars, realize.iter_values, strict=True)
        if axis.iter_type == IterVar.CommReduce
    ]
    loops = sch.get_loops(total)
    ahead = [sch.get(loop).loop_var for loop in loops]
    inside = loops[[each.same_as(sch.get(turn).loop_var) for each in ahead].index(True) + 1 :]
    is_of_parts = [any(map(sch.get(loop).loop_var.same_as, of_parts)) for loop in inside]
    parts = inside[is_of_parts.index(True)]
    elements = [loop for loop, is_it in zip(inside, is_of_parts, strict=True) if not is_it]
    sch.reorder(parts, *elements)
    return parts, elements


def _loops_of_axes(sch: Schedule, total: SBlockRV, block: SBlockRV) -> list[LoopRV]:
    """The loops of a block over C[s, i, j], which it reads plainly; of an axis with one element
    that it has not, a loop that runs once."""
    written = sch.get(total).writes[0].source
    nest = nest_of(sch, block)
    read = next(each for each in nest.block.reads if each.source.same_as(written))
    loops = sch.get_loops(block)
    found: list[LoopRV] = []
    for part in read.region:
        axes = [
            value
            for axis, value in zip(nest.block.iter_vars, nest.realize.iter_values, strict=True)
            if axis.var.same_as(part.min)
        ]
        own = [
            loop
            for loop, known in zip(loops, nest.loops, strict=True)
            if axes and known.loop_var.same_as(axes[0])
        ]
        found.append(own[0] if own else sch.add_unit_loop(block))
    return found
