"""Tiles of which only the first rows are copied, as the others are past an edge for certain.

One row of A, a token's, is multiplied in tiles of sixteen rows. What the other fifteen give is not
stored, so that they need not be there: the tile has as many rows as threads copy together, and
reads of others find one of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from tvm import tirx
from tvm.sym import Analyzer
from tvm.tirx import Buffer, Expr, Var

from mfmadsl.passes.main_loop.analysis.parsed import MainLoop
from mfmadsl.passes.main_loop.moves.element import Element
from mfmadsl.passes.tir.expression import (
    NotNumbersError,
    constant,
    depends,
    loads_of,
    multiple_of,
    numbers,
    variables_of,
)


def with_short_tiles(
    elements: Sequence[Element], main: MainLoop, edges: Sequence[str],
    threads: Mapping[str, int], analyzer: Analyzer,
) -> tuple[list[Element], MainLoop]:  # fmt: skip
    """The elements that are copied, and the loop, with the tiles as short as that makes them.

    `edges` names the tiles whose rows past an edge may hold anything, and `threads` says how many
    values each thread index has, by its name. A tile whose first rows are no power of two of
    elements stays as it is.
    """
    tiles = {each.buffer.__chandle__(): each.buffer for each in elements}
    short: dict[int, Buffer] = {}
    kept: list[Element] = []
    for handle, tile in tiles.items():
        those = [each for each in elements if each.buffer.__chandle__() == handle]
        if tile.name not in edges:
            kept += those
            continue
        within = [each for each in those if not _is_past_edge(each, main.loop.loop_var, analyzer)]
        length = _length(within, threads)
        if length is None or len(within) == len(those) or not _reads_rows(main, tile, length):
            kept += those
            continue
        short[handle] = tirx.decl_buffer((length,), tile.dtype, tile.name, scope="shared")
        kept += [replace(each, buffer=short[handle]) for each in within]
    return kept, main.with_tiles(short, _within)


def _is_past_edge(element: Element, k: Var, analyzer: Analyzer) -> bool:
    """Whether no thread copies it from within the matrix; past the end of K there are zeros."""
    edges = [condition for condition in element.edges if not depends(condition, k)]
    return any(analyzer.can_prove(tirx.Not(condition)) for condition in edges)


def _length(elements: Sequence[Element], threads: Mapping[str, int]) -> int | None:
    """How many places all threads fill, if they are the first ones and a power of two."""
    shape = tuple(threads.values())
    values = dict(zip(threads, np.indices(shape), strict=True))
    if not elements or any(each.guards for each in elements):
        return None
    try:
        places = [np.broadcast_to(numbers(each.place, values), shape) for each in elements]
    except NotNumbersError:
        return None
    found = np.unique(np.stack(places))
    length = len(found)
    first = int(found[0]) == 0 and int(found[-1]) == length - 1
    return length if first and not length & (length - 1) else None


def _reads_rows(main: MainLoop, tile: Buffer, length: int) -> bool:
    """Whether all that the loop does with a tile is to read what lies within one of its parts of
    such a length."""
    reads = [read for step in main.steps for read in step.reads]
    found = [load for read in reads for load in loads_of(read.value) if load.source.same_as(tile)]
    uses = sum(
        v.same_as(tile)
        for step in main.steps
        for s in (*step.reads, *step.computing)
        for v in variables_of(s)
    )
    return len(found) == uses and all(_is_within(load.indices[0], length) for load in found)


def _is_within(index: Expr, length: int) -> bool:
    if not isinstance(index, tirx.Ramp):
        return True
    lanes = int(index.lanes)
    return (
        constant(index.stride) == 1 and length % lanes == 0 and multiple_of(index.base) % lanes == 0
    )


def _within(index: Expr, tile: Buffer) -> Expr:
    """Where a short tile has the row that is read for the one at an index."""
    if isinstance(index, tirx.Ramp):
        return tirx.Ramp(_within(index.base, tile), index.stride, index.lanes)
    return tirx.BitwiseAnd(index, tirx.const(int(tile.shape[0]) - 1, index.ty.dtype))
