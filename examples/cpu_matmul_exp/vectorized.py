"""Vectorized: a row of 32 columns is two vectors of 16 floats, and 8 rows of sums are registers."""

from __future__ import annotations

from dataclasses import dataclass

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

BLOCK = 128
"""Rows of E that are made and used at once."""


@dataclass(frozen=True)
class Tile:
    """What stays in registers: rows and columns of sums; and how many terms of them stand one after
    the other in the code."""

    rows: int
    columns: int
    terms: int


TILE = Tile(8, 32, 1)
"""16 vectors of sums, half of what AVX-512 has: two more are read of B, and A has none."""


def schedule(sch: Schedule, block: int = BLOCK, first: Tile = TILE, second: Tile = TILE) -> None:
    """Products fused as before, in larger blocks of rows, since now the tile is the registers'.

    A tile's rows have to divide the block's: of a tile that reaches into the next block TVM drops
    the condition where the sums are stored, and two threads write the same rows of F, one of them
    wrongly. Raises ValueError for others, as far as they are numbers.
    """
    for tile in (first, second):
        if isinstance(block, int) and isinstance(tile.rows, int) and block % tile.rows:
            raise ValueError(f"tiles of {tile.rows} rows do not divide a block of {block}")
    p, exp, f = (sch.get_sblock(name) for name in ("P", "E", "F"))
    rows = sch.split(sch.get_loops(f)[0], [None, block])[0]
    sch.parallel(rows)
    sch.compute_at(exp, rows, preserve_unit_loops=True)
    sch.compute_at(p, rows, preserve_unit_loops=True)
    columns = in_registers(sch, p, first)
    sch.reverse_compute_at(exp, columns, preserve_unit_loops=True)
    sch.vectorize(sch.get_loops(exp)[-1])
    in_registers(sch, f, second)


def in_registers(sch: Schedule, block: SBlockRV, tile: Tile) -> LoopRV:
    """Keep a tile's sums in registers through all terms; returns the loop over columns of tiles."""
    store = sch.cache_write(block, 0, "local")
    row, column, k = sch.get_loops(block)[-3:]
    rows, row = sch.split(row, [None, tile.rows])
    columns, column = sch.split(column, [None, tile.columns])
    k, term = sch.split(k, [None, tile.terms])
    sch.reorder(columns, rows, k, term, row, column)
    sch.reverse_compute_at(store, rows, preserve_unit_loops=True)
    sch.unroll(term)
    written_out(sch, block)
    written_out(sch, store)
    written_out(sch, sch.decompose_reduction(block, k))
    return columns


def written_out(sch: Schedule, block: SBlockRV) -> None:
    """A tile's rows one after the other in the code, and its columns as vectors."""
    row, column = sch.get_loops(block)[-2:]
    sch.unroll(row)
    sch.vectorize(column)
