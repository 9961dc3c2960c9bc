"""Vectorized: a row of 32 columns is two vectors of 16 floats, and 8 rows of sums are registers."""

from __future__ import annotations

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

BLOCK, ROWS, COLUMNS = 256, 8, 32
"""Rows of E at once, and a tile of registers: 16 of the 32 vectors that AVX-512 has."""


def schedule(sch: Schedule) -> None:
    """Products fused as before, in larger blocks of rows, since now the tile is the registers'."""
    first, exp, second = (sch.get_sblock(name) for name in ("P", "E", "F"))
    rows = sch.split(sch.get_loops(second)[0], [None, BLOCK])[0]
    sch.parallel(rows)
    sch.compute_at(exp, rows)
    sch.compute_at(first, rows)
    columns = in_registers(sch, first)
    sch.reverse_compute_at(exp, columns)
    sch.vectorize(sch.get_loops(exp)[-1])
    in_registers(sch, second)


def in_registers(sch: Schedule, block: SBlockRV) -> LoopRV:
    """Keep a tile's sums in registers through all terms; returns the loop over columns of tiles."""
    store = sch.cache_write(block, 0, "local")
    row, column, k = sch.get_loops(block)[-3:]
    rows, row = sch.split(row, [None, ROWS])
    columns, column = sch.split(column, [None, COLUMNS])
    sch.reorder(columns, rows, k, row, column)
    sch.reverse_compute_at(store, rows)
    written_out(sch, store)
    sch.unroll(row)
    sch.vectorize(column)
    written_out(sch, sch.decompose_reduction(block, k))
    return columns


def written_out(sch: Schedule, block: SBlockRV) -> None:
    """A tile's rows one after the other in the code, and its columns as vectors."""
    row, column = sch.get_loops(block)[-2:]
    sch.unroll(row)
    sch.vectorize(column)
