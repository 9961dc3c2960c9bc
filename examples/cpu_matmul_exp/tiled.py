"""Tiled: 32 x 32 elements of a product and 32 terms of their sums at a time."""

from __future__ import annotations

from dataclasses import dataclass

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

TILE = 32


@dataclass(frozen=True)
class Loops:
    """Those over tiles, of rows and of columns, the sum's over its tiles, and those in a tile."""

    rows: LoopRV
    columns: LoopRV
    k: LoopRV
    row: LoopRV
    term: LoopRV
    column: LoopRV


def schedule(sch: Schedule) -> None:
    sch.parallel(sch.get_loops(sch.get_sblock("E"))[0])
    for name in ("P", "F"):
        block = sch.get_sblock(name)
        loops = tile(sch, block)
        sch.parallel(loops.rows)
        sch.decompose_reduction(block, loops.k)


def tile(sch: Schedule, block: SBlockRV) -> Loops:
    """Split the last three loops around a product, and put those in a tile inside.

    A tile of B, 4 KiB, is read from memory once, and from the L1 32 times; a row of the tile of P
    stays in registers through the terms.
    """
    row, column, k = sch.get_loops(block)[-3:]
    rows, row = sch.split(row, [None, TILE])
    columns, column = sch.split(column, [None, TILE])
    k, term = sch.split(k, [None, TILE])
    sch.reorder(rows, columns, k, row, term, column)
    return Loops(rows, columns, k, row, term, column)
