"""Sums, largest elements and the like of rows, and what is made of each row with them.

Softmax, normalisations and their relatives: a workgroup takes a row, and its threads take several
elements each, whose loads are under way together. Rows may have any length, known or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import tvm
from tvm.s_tir import SBlock, Schedule
from tvm.s_tir.dlight.analysis import SBlockInfo, normalize_prim_func
from tvm.s_tir.dlight.base import try_inline_contiguous_spatial  # type: ignore[attr-defined]
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx import Buffer, Expr, PrimFunc

from mfmadsl.passes.tir.annotation import AHEAD
from mfmadsl.passes.tir.expression import constant
from mfmadsl.schedule.product.cases import of_cases
from mfmadsl.schedule.product.dataflow import holds
from mfmadsl.schedule.product.nest import same

_AHEAD = 8
"""Elements of a thread whose loads are under way together, at most."""

_THREADS = {256: 64, 1024: 128, 4096: 256, 16384: 512}
"""Of a row, by the length up to which they are best. Rows of unknown length have a kernel each."""

_MOST_THREADS = 1024


def row_schedule(function: PrimFunc) -> Schedule | None:
    """A workgroup for each row; None for a function that is not made of rows, each reduced along
    its last axis once or several times, and then stored element by element."""
    if (length := _length(function)) is None:
        return None
    if (known := constant(length)) is not None:
        return _scheduled(function, known)
    limits = list(_THREADS)
    cases = [_scheduled(function, each).mod["main"] for each in (*limits, limits[-1] + 1)]
    return Schedule(tvm.IRModule({"main": of_cases(cases, length, [[each] for each in limits])}))


def _length(function: PrimFunc) -> Expr | None:
    """Of a row, if that is what the function is about."""
    sch = Schedule(function)
    blocks = _blocks(sch)
    if not blocks or len(blocks) < 2:
        return None
    *reductions, last = blocks
    found = [sch.get(each.block_rv) for each in blocks]
    reduced = [region.source for block in found[:-1] for region in block.writes]
    is_rows = (
        last.is_injective()
        and bool(last.iters)
        and all(each.dom_kind().lstrip("S") == "R" for each in reductions)
        and not any(holds(function.params, buffer) for buffer in reduced)
        and all(_is_row_by_row(block, reduced) for block in found)
    )
    return last.iters[-1].dom if is_rows else None


def _is_row_by_row(block: SBlock, reduced: Sequence[Buffer]) -> bool:
    """Whether a block asks, for what is in a row, for results of this row only: all of its axes but
    the last say which, in their order, besides axes of one element."""
    rows = [axis.var for axis in block.iter_vars[:-1] if constant(axis.dom.extent) != 1]
    for region in (*block.reads, *block.writes):
        if holds(reduced, region.source):
            places = [each.min for each in region.region if constant(each.min) != 0]
            if not same(places, rows):
                return False
    return True


def _blocks(sch: Schedule) -> list[SBlockInfo] | None:
    """The blocks in their order, without those that are computed where they are read."""
    blocks: list[SBlockInfo] | None = try_inline_contiguous_spatial(sch, normalize_prim_func(sch))
    return blocks


def _scheduled(function: PrimFunc, length: int) -> Schedule:
    """A schedule for rows of any length, best for one."""
    sch = Schedule(function)
    *reductions, last = _blocks(sch) or []
    shape = _shape(length)
    *rows, along = sch.get_loops(last.block_rv)
    row = sch.fuse(*rows) if rows else sch.add_unit_loop(along)
    sch.bind(row, "blockIdx.x")
    _cut(sch, along, shape)
    for each in reversed(reductions):
        _at_row(sch, each.block_rv, row, shape)
    return sch


def _shape(length: int) -> tuple[int, int]:
    """Threads, and elements of a thread, of a step."""
    threads = next((n for limit, n in _THREADS.items() if length <= limit), _MOST_THREADS)
    return threads, min(ceil(length / threads), _AHEAD)


def _at_row(sch: Schedule, block: SBlockRV, row: LoopRV, shape: tuple[int, int]) -> None:
    """Reduce a row where it is asked for; all threads find the result in the LDS."""
    for place in range(len(sch.get(block).writes)):
        sch.set_scope(block, place, "shared")
    sch.compute_at(block, row)
    _cut(sch, sch.get_loops(block)[-1], shape)


def _cut(sch: Schedule, along: LoopRV, shape: tuple[int, int]) -> None:
    """A row in threads, which take neighbouring elements, and steps of several elements each."""
    threads, ahead = shape
    step, element, thread = sch.split(along, [None, ahead, threads])
    sch.bind(thread, "threadIdx.x")
    sch.reorder(thread, step, element)
    sch.unroll(element)
    sch.annotate(element, AHEAD, 1)
