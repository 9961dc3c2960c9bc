"""The stores of an attention's results, from the lanes that hold them or by whole cache lines.

A lane holds a few columns of one query here and there, and its neighbours those of other queries:
stored from there, each piece of some bytes goes to memory as a line of its own. So what lies in
memory column by column is first brought into that order in the LDS.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import gcd

from tvm import tirx
from tvm.script.ir_builder import tirx as script
from tvm.sym import Analyzer
from tvm.tirx import Buffer, BufferStore, Expr, Var

from mfmadsl.passes.tir.expression import bits_of, constant
from mfmadsl.schedule.flash_attention.described import Result, at_places
from mfmadsl.schedule.flash_attention.loops import loops, named
from mfmadsl.schedule.flash_attention.results import (
    Sums,
    column_of,
    in_columns,
    inverse_of,
    is_first,
    made_of,
)
from mfmadsl.schedule.flash_attention.softmax import exchange
from mfmadsl.schedule.flash_attention.turned import chunk_turned
from mfmadsl.schedule.flash_attention.wave import Cut, WavePlace, WaveRegisters
from mfmadsl.schedule.matrix_core.tiling.resources import CHUNK, LINE

Made = Callable[[Expr, Expr, Expr, Expr], BufferStore]
"""Gives what is stored of an element of O: of a tile of columns, a tile of rows, a lane, and one of
its registers."""


def store_results(cut: Cut, place: WavePlace, held: WaveRegisters) -> None:
    """Store all results. Those of a query alone come from one of the lanes that have it."""
    with cut.lanes() as lane:
        for (n,) in loops(cut.sizes.queries):
            exchange(cut, held.total, n, lane, lambda a, b: a + b)
            script.buffer_store(held.partial, inverse_of(held.total[n, lane, 0]), [n, lane, 0])
    for result in cut.found.results:
        made = partial(_made, cut, place, held, result)
        if result.of_columns:
            store_columns(cut, place, result.store, made)
        else:
            _store_rows(cut, place, made)


def store_columns(cut: Cut, place: WavePlace, store: BufferStore, made: Made) -> None:
    """Store what is made of elements of O; `store` says where a row and a column go."""
    if store.indices[-1].same_as(cut.found.axes.column.var):
        _store_lines(cut, place, store, made)
        return
    with cut.lanes() as lane:
        for c, n, r in loops(cut.sizes.columns, cut.sizes.queries, cut.sums):
            row, column = cut.row(place, n, lane), column_of(cut, c, lane, r)
            bounds = tirx.all(*in_columns(cut, place, row, column))
            own = made(c, n, lane, r)
            with script.If(Analyzer().simplify(bounds)), script.Then():
                script.buffer_store(own.buffer, own.value, list(own.indices))


def _store_rows(cut: Cut, place: WavePlace, made: Made) -> None:
    zero = tirx.const(0, "int32")
    with cut.lanes() as lane:
        for (n,) in loops(cut.sizes.queries):
            store = made(zero, n, lane, zero)
            bounds = tirx.all(cut.row(place, n, lane) < place.rows, is_first(cut, lane))
            with script.If(Analyzer().simplify(bounds)), script.Then():
                script.buffer_store(store.buffer, store.value, list(store.indices))


def _store_lines(cut: Cut, place: WavePlace, store: BufferStore, made: Made) -> None:
    """Store a result, about a line of columns at a time: each wave its own rows."""
    buffer, tile = store.buffer, cut.chain.intrinsic.m
    size = bits_of(buffer.dtype) // 8
    once = gcd(cut.sizes.columns, max(1, LINE // (tile * size)))
    shape = cut.tiling.block, once * tile
    lines = named(
        f"{buffer.name}_lines",
        script.sblock_alloc_buffer(shape, str(buffer.dtype), scope="shared"),
    )
    for first in range(0, cut.sizes.columns, once):
        with cut.lanes() as lane:
            for c, n, r in loops(once, cut.sizes.queries, cut.sums):
                row = place.own_row + cut.row_of_wave(n, lane)
                own = chunk_turned(lines, row, column_of(cut, c, lane, r))
                script.buffer_store(lines, made(c + first, n, lane, r).value, own)
        _store_chunks(cut, place, store, lines, first * tile, once * tile)


def _store_chunks(
    cut: Cut, place: WavePlace, store: BufferStore, lines: Buffer, first: int, columns: int
) -> None:
    """Store columns from the `first` on that are in the LDS: neighbouring lanes take neighbouring
    chunks of a row."""
    axes, lanes = cut.found.axes, cut.chip.wave_size
    width = CHUNK * 8 // bits_of(lines.dtype)
    while (
        cut.tiling.rows * columns % (width * lanes) or (constant(axes.column.extent) or 1) % width
    ):
        width //= 2
    chunks = columns // width
    with cut.lanes() as lane:
        for (piece,) in loops(cut.tiling.rows * chunks // lanes):
            number = piece * lanes + lane
            own, begin = tirx.floordiv(number, chunks), tirx.floormod(number, chunks) * width
            row, column = place.row + own, begin + first
            bounds = in_columns(cut, place, row, column)
            with script.If(Analyzer().simplify(tirx.all(*bounds))), script.Then():
                for (e,) in loops(width):
                    places: dict[Var, Expr] = {
                        **place.batch, axes.row.var: row, axes.column.var: column + e,
                    }  # fmt: skip
                    element = lines[tuple(chunk_turned(lines, place.own_row + own, begin + e))]
                    indices = [at_places(index, places) for index in store.indices]
                    script.buffer_store(store.buffer, element, indices)


def _made(
    cut: Cut, place: WavePlace, held: WaveRegisters, result: Result, c: Expr, n: Expr, lane: Expr,
    r: Expr,
) -> BufferStore:  # fmt: skip
    """What a result is for an element of O.

    The last step has made scores of one that there is not.
    """
    known = Sums(
        held.before[n, lane, 0] * tirx.const(cut.score.factor, "float32"),
        held.total[n, lane, 0], held.partial[n, lane, 0], held.o[c, n, lane, r],
    )  # fmt: skip
    places = {**place.batch, cut.found.axes.row.var: cut.row(place, n, lane)}
    return made_of(cut, result, known, places, column_of(cut, c, lane, r))
