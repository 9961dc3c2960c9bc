"""Workgroups that share the keys of some queries, and a second kernel that joins their parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tvm import tirx
from tvm.script.ir_builder import tirx as script
from tvm.sym import Analyzer
from tvm.tirx import Buffer, BufferStore, Expr

from mfmadsl.passes.tir.expression import constant
from mfmadsl.schedule.flash_attention.definition import LOWEST
from mfmadsl.schedule.flash_attention.loops import bound, loops, named
from mfmadsl.schedule.flash_attention.results import (
    Sums,
    column_of,
    inverse_of,
    is_first,
    made_of,
)
from mfmadsl.schedule.flash_attention.softmax import exchange, exp2
from mfmadsl.schedule.flash_attention.stores import store_columns
from mfmadsl.schedule.flash_attention.wave import Cut, WavePlace, WaveRegisters, batch_places

_WAVES = 8  # of a workgroup that joins parts


@dataclass(frozen=True)
class KeyParts:
    """What each part of the keys makes of a query: [batch, part, query], and of its columns."""

    largest: Buffer
    total: Buffer
    attended: Buffer

    @property
    def buffers(self) -> list[Buffer]:
        """All of it."""
        return [self.largest, self.total, self.attended]


def parts_of(cut: Cut, batches: Expr) -> KeyParts:
    """Memory for the parts."""
    axes = cut.found.axes
    shape = [batches, cut.parts, axes.row.extent]

    def allocated(name: str, *more: Expr) -> Buffer:
        buffer: Buffer = script.sblock_alloc_buffer((*shape, *more), "float32")
        return named(name, buffer)

    return KeyParts(
        allocated("part_largest"), allocated("part_total"),
        allocated("part_attended", axes.column.extent),
    )  # fmt: skip


def store_part(
    cut: Cut, place: WavePlace, held: WaveRegisters, parts: KeyParts, batch: Expr
) -> None:
    """Store what a workgroup has found of its part of the keys."""
    with cut.lanes() as lane:
        for (n,) in loops(cut.sizes.queries):  # while all lanes run
            exchange(cut, held.total, n, lane, lambda a, b: a + b)
        for (n,) in loops(cut.sizes.queries):
            row, total = cut.row(place, n, lane), held.total[n, lane, 0]
            largest = tirx.max(held.before[n, lane, 0], tirx.const(LOWEST, "float32"))
            if not cut.subtracts:  # parts are added up: what they are off by has to be the same
                script.buffer_store(held.rescale, exp2(-held.off_before[n, lane, 0]), [n, lane, 0])
                total = total * held.rescale[n, lane, 0]
            with script.If(tirx.all(row < place.rows, is_first(cut, lane))), script.Then():
                script.buffer_store(parts.largest, largest, [batch, place.split, row])
                script.buffer_store(parts.total, total, [batch, place.split, row])
    axes = cut.found.axes
    indices = [batch, place.split, axes.row.var, axes.column.var]

    def made(c: Expr, n: Expr, lane: Expr, r: Expr) -> BufferStore:
        row, column = cut.row(place, n, lane), column_of(cut, c, lane, r)
        attended = held.o[c, n, lane, r]
        if not cut.subtracts:
            attended = attended * held.rescale[n, lane, 0]
        return BufferStore(parts.attended, attended, [batch, place.split, row, column])

    store_columns(cut, place, BufferStore(parts.attended, tirx.const(0, "float32"), indices), made)


def join_parts(cut: Cut, parts: KeyParts, batches: Expr) -> None:
    """A kernel that stores the results.

    A workgroup joins the parts of a query: each wave some of them, then all what the waves found.
    """
    queries = batches * cut.found.axes.row.extent
    waves, lanes = min(_WAVES, cut.tiling.splits), cut.chip.wave_size
    with (
        bound(queries, "blockIdx.x", "query") as query,
        bound(waves, "threadIdx.y", "wave") as wave,
        bound(lanes, "threadIdx.x", "lane") as lane,
        script.sblock("join"),
    ):
        extents, threads = (queries, waves, lanes), (query, wave, lane)
        own, own_wave, own_lane = [
            script.axis.spatial(*each) for each in zip(extents, threads, strict=True)
        ]
        for name, axis in (("own_query", own), ("own_wave", own_wave), ("own_lane", own_lane)):
            named(name, axis)
        _join(cut, parts, waves, own, own_wave, own_lane)


def _join(cut: Cut, parts: KeyParts, waves: int, query: Expr, wave: Expr, lane: Expr) -> None:
    axes, lanes, splits = cut.found.axes, cut.chip.wave_size, cut.tiling.splits
    columns = constant(axes.column.extent)
    assert columns is not None
    each = -(-columns // lanes)
    row = tirx.floormod(query, axes.row.extent)
    batch = tirx.floordiv(query, axes.row.extent)
    held = _allocated("", "local", 1, each)
    shared = _allocated("_of_waves", "shared", waves, each * lanes)

    def element(n: Expr, c: Expr) -> Found:
        part = n * waves + wave
        place = [batch, tirx.min(part, cut.parts - 1), row]
        column = tirx.min(lane * each + c, columns - 1)
        share = tirx.const(1, "float32")
        if constant(cut.parts) is None or splits % waves:
            share = tirx.Select(part < cut.parts, share, tirx.const(0, "float32"))
        return Found(
            parts.largest[tuple(place)], parts.total[tuple(place)],
            parts.attended[(*place, column)], share,
        )  # fmt: skip

    def of_wave(n: Expr, c: Expr) -> Found:
        column = lane * each + c
        one = tirx.const(1, "float32")
        return Found(shared.largest[n, 0], shared.total[n, 0], shared.attended[n, column], one)

    _add_up(cut, held, each, -(-splits // waves), element)
    zero = tirx.const(0, "int32")
    for (c,) in loops(each):
        script.buffer_store(shared.attended, held.attended[0, c], [wave, lane * each + c])
    script.buffer_store(shared.largest, held.largest[0, 0], [wave, zero])
    script.buffer_store(shared.total, held.total[0, 0], [wave, zero])
    _add_up(cut, held, each, waves, of_wave)
    places = {**batch_places(cut, batch), axes.row.var: row}
    largest = held.largest[0, 0] * tirx.const(cut.score.factor, "float32")
    with script.If(tirx.EQ(wave, zero)), script.Then():
        for result in cut.found.results:
            for (c,) in loops(each if result.of_columns else 1):
                total, column = held.total[0, 0], lane * each + c
                known = Sums(largest, total, inverse_of(total), held.attended[0, c])
                store = made_of(cut, result, known, places, column)
                bound_of = column < columns if result.of_columns else tirx.EQ(lane, zero)
                with script.If(Analyzer().simplify(bound_of)), script.Then():
                    script.buffer_store(store.buffer, store.value, list(store.indices))


@dataclass(frozen=True)
class Found:
    """What a part has of a query and a column, and whether it counts, 1 or 0."""

    largest: Expr
    total: Expr
    attended: Expr
    counts: Expr


def _allocated(suffix: str, scope: str, count: int, columns: int) -> KeyParts:
    def buffer(name: str, width: int) -> Buffer:
        made: Buffer = script.sblock_alloc_buffer((count, width), "float32", scope=scope)
        return named(f"{name}{suffix}", made)

    return KeyParts(buffer("largest", 1), buffer("total", 1), buffer("attended", columns))


def _add_up(
    cut: Cut, held: KeyParts, columns: int, count: int, part: Callable[[Expr, Expr], Found]
) -> None:
    """Add up so many parts, each in proportion to the largest score of all."""
    zero, exponent = tirx.const(0, "int32"), tirx.const(cut.score.exponent, "float32")
    script.buffer_store(held.largest, part(zero, zero).largest, [0, 0])
    for n in range(1, count):
        other = part(tirx.const(n, "int32"), zero).largest
        script.buffer_store(held.largest, tirx.max(held.largest[0, 0], other), [0, 0])
    for n in range(count):
        for c in range(columns):
            found = part(tirx.const(n, "int32"), tirx.const(c, "int32"))
            less = (found.largest - held.largest[0, 0]) * exponent
            share = exp2(less) * found.counts
            for buffer, value in ((held.total, found.total), (held.attended, found.attended)):
                if buffer is held.total and c:
                    continue
                more = value * share
                own = [0, c if buffer is held.attended else 0]
                script.buffer_store(buffer, more + buffer[tuple(own)] if n else more, own)
