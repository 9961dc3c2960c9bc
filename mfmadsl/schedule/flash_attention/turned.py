"""Tiles in the LDS of which lanes read or write the same columns of several rows.

The passes order those of a loop; these are for what is ahead of the loops and behind them.
"""

from __future__ import annotations

from tvm import tirx
from tvm.tirx import Buffer, Expr

from mfmadsl.passes.tir.expression import bits_of, constant
from mfmadsl.schedule.matrix_core.tiling.resources import CHUNK


def chunk_turned(tile: Buffer, row: Expr, column: Expr) -> list[Expr]:
    """Where an element lies: chunks of a row in another order than those of the row before, so that
    a column of all rows is not in one bank."""
    width = CHUNK * 8 // bits_of(tile.dtype)
    columns = constant(tile.shape[1])
    assert columns is not None
    chunks = columns // width
    turn = tirx.floormod(row, max(1, chunks & -chunks))
    return [
        row,
        (tirx.floordiv(column, width) ^ turn) * width + tirx.floormod(column, width),
    ]
