"""Workgroups that share the keys of some queries, and a second kernel that joins their parts."""

from __future__ import annotations

from dataclasses import dataclass
from math import e, log2

from tvm import tirx
from tvm.script.ir_builder import tirx as script
from tvm.tirx import Buffer, Expr

from mfmadsl.schedule.attention.loops import bound, loops, named
from mfmadsl.schedule.attention.results import (
    Sums,
    column_of,
    in_columns,
    inverse_of,
    is_first,
    made_of,
)
from mfmadsl.schedule.attention.softmax import exchange, exp2
from mfmadsl.schedule.attention.wave import Cut, Place, Registers, batch_places

_THREADS = 256


@dataclass(frozen=True)
class Parts:
    """What each part of the keys makes of a query: [batch, part, query], and of its columns."""

    largest: Buffer
    total: Buffer
    attended: Buffer


def parts_of(cut: Cut, batches: Expr) -> Parts:
    """Memory for the parts."""
    axes = cut.found.axes
    shape = [batches, cut.tiling.splits, axes.row.dom.extent]

    def allocated(name: str, *more: Expr) -> Buffer:
        buffer: Buffer = script.sblock_alloc_buffer((*shape, *more), "float32")
        return named(name, buffer)

    return Parts(
        allocated("part_largest"), allocated("part_total"),
        allocated("part_attended", axes.column.dom.extent),
    )  # fmt: skip


def store_part(cut: Cut, place: Place, held: Registers, parts: Parts, batch: Expr) -> None:
    """Store what a workgroup has found of its part of the keys."""
    rows = cut.found.axes.row.dom.extent
    with cut.lanes() as lane:
        for (n,) in loops(cut.sizes.queries):
            exchange(cut, held.total, n, lane, lambda a, b: a + b)
            row = cut.row(place, n, lane)
            largest = held.before[n, lane, 0] * tirx.const(cut.score.factor, "float32")
            with script.If(tirx.all(row < rows, is_first(cut, lane))), script.Then():
                script.buffer_store(parts.largest, largest, [batch, place.split, row])
                script.buffer_store(parts.total, held.total[n, lane, 0], [batch, place.split, row])
        for c, n, r in loops(cut.sizes.columns, cut.sizes.queries, cut.sums):
            row, column = cut.row(place, n, lane), column_of(cut, c, lane, r)
            with script.If(tirx.all(*in_columns(cut, row, column))), script.Then():
                own = [batch, place.split, row, column]
                script.buffer_store(parts.attended, held.o[c, n, lane, r], own)


def join_parts(cut: Cut, parts: Parts, batches: Expr) -> None:
    """A kernel that stores the results, of which each thread makes a column of a query."""
    axes = cut.found.axes
    columns = axes.column.dom.extent
    elements = batches * axes.row.dom.extent * columns
    groups = tirx.floordiv(elements + (_THREADS - 1), _THREADS)
    with (
        bound(groups, "blockIdx.x", "group") as group,
        bound(_THREADS, "threadIdx.x", "thread") as thread,
        script.sblock("join"),
    ):
        own_group = named("own_group", script.axis.spatial(groups, group))
        own_thread = named("own_thread", script.axis.spatial(_THREADS, thread))
        element = own_group * _THREADS + own_thread
        with script.If(element < elements), script.Then():
            _join(cut, parts, element)


def _join(cut: Cut, parts: Parts, element: Expr) -> None:
    axes, splits = cut.found.axes, cut.tiling.splits
    column = tirx.floormod(element, axes.column.dom.extent)
    query = tirx.floordiv(element, axes.column.dom.extent)
    row = tirx.floormod(query, axes.row.dom.extent)
    batch = tirx.floordiv(query, axes.row.dom.extent)
    largest, total, attended = (
        named(name, script.sblock_alloc_buffer((1,), "float32", scope="local"))
        for name in ("largest_of_all", "total_of_all", "attended_of_all")
    )
    zero = tirx.const(0, "float32")
    script.buffer_store(largest, parts.largest[batch, 0, row], [0])
    for (n,) in loops(splits - 1):
        other = parts.largest[batch, n + 1, row]
        script.buffer_store(largest, tirx.max(largest[0], other), [0])
    script.buffer_store(total, zero, [0])
    script.buffer_store(attended, zero, [0])
    for (n,) in loops(splits):
        less = parts.largest[batch, n, row] - largest[0]
        share = exp2(less * tirx.const(log2(e), "float32"))
        more = parts.total[batch, n, row] * share
        script.buffer_store(total, total[0] + more, [0])
        more = parts.attended[batch, n, row, column] * share
        script.buffer_store(attended, attended[0] + more, [0])
    sums = Sums(largest[0], total[0], inverse_of(total[0]), attended[0])
    places = {**batch_places(cut, batch), axes.row.var: row}
    for result in cut.found.results:
        store = made_of(cut, result, sums, places, column)
        if result.of_columns:
            script.buffer_store(store.buffer, store.value, list(store.indices))
        else:
            with script.If(tirx.EQ(column, tirx.const(0, "int32"))), script.Then():
                script.buffer_store(store.buffer, store.value, list(store.indices))
