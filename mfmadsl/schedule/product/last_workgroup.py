"""The sums of a split K, scheduled so that the last workgroup of a tile may make them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import prod
from operator import mul

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
MOST_LOADED = 64
"""Elements that a thread's loads have on their way, of all parts together."""

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
    count = _number_of_parts(sch, total)
    known = [constant(sch.get(loop).extent) for loop in loops]  # TVM annotates with numbers
    # Of a matrix that is smaller than a tile no thread looks at rows that are not there.
    extents = [
        size if own is None else min(size, own) for size, own in zip(cut.tile, known, strict=True)
    ]
    width, height = _together(extents, known[2] or 0, prod(cut.threads), count)
    outer, inner = map(list, zip(*map(sch.split, loops, ([None, x] for x in extents)), strict=True))
    sch.reorder(*outer, *inner)
    for loop, tag in zip(outer, ("blockIdx.z", "blockIdx.y", "blockIdx.x"), strict=True):
        sch.bind(loop, tag)
    inner[1], rows = sch.split(inner[1], [None, height])
    inner[2], columns = sch.split(inner[2], [None, width])
    sch.reorder(*inner, rows, columns)
    turn, wave, lane = sch.split(sch.fuse(*inner), [None, *cut.threads])
    sch.bind(wave, "threadIdx.y")
    sch.bind(lane, "threadIdx.x")
    sch.reorder(wave, lane, turn, rows, columns)
    sch.set_scope(total, 0, "local")
    sch.compute_at(total, turn)
    parts, elements = _parts_first(sch, total, turn)
    for each in (rows, columns, *elements):
        sch.unroll(each)
    reader = total
    if count is not None:
        sch.unroll(parts)
        reader = loaded = sch.cache_read(total, 0, "local")
        sch.compute_at(loaded, turn)
        for each in sch.get_loops(loaded)[len(sch.get_loops(total)) - len(elements) - 1 :]:
            sch.unroll(each)
    # Threads that take several rows at once may load some past an edge.
    below = height == 1 or known[1] == extents[1]
    sch.annotate(reader, LAST_WORKGROUP, known[1] or 0 if below else 0)


def _number_of_parts(sch: Schedule, total: SBlockRV) -> int | None:
    """How many parts there are, if no more than a thread may have loads of at once."""
    domains = (a.dom.extent for a in sch.get(total).iter_vars if a.iter_type == IterVar.CommReduce)
    count = constant(reduce(mul, domains, tirx.const(1)))
    return count if count is not None and count <= _MOST_UNROLLED else None


def _together(extents: list[int], columns: int, threads: int, parts: int | None) -> tuple[int, int]:
    """How many neighbours of a row a thread takes at once, and of how many rows, such that all
    threads have some, and store as many at once where C has so many `columns`."""
    width = _MOST_TOGETHER
    while width > 1 and (columns % width or prod(extents) < threads * width):
        width //= 2
    height = MOST_LOADED // width // (parts or 1)
    while height > 1 and (extents[1] % height or prod(extents) < threads * width * height):
        height -= 1
    return width, max(1, height)


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
