"""Scales and indices that lie in memory in another order than by rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.tirx import Expr, PrimFunc

from mfmadsl.schedule.product.added_nest import element_wise, replaced
from mfmadsl.schedule.product.described import axes_of
from mfmadsl.schedule.product.nest import nests


@dataclass(frozen=True)
class Order:
    """Where bytes lie: `shape` of so many rows and columns, `place` of a row and a column."""

    shape: Callable[[int, int], Sequence[int]]
    place: Callable[[Expr, Expr], Sequence[Expr]]


WORD = 4
"""The bytes of a row that lie together in the order `words`."""

WORDS = Order(
    lambda rows, columns: (columns // WORD, rows, WORD),
    lambda row, column: (column // WORD, row, column % WORD),
)
"""Words of four bytes of which those of all rows lie together."""

SHUFFLED = Order(
    lambda rows, columns: (-(-rows // 32), -(-columns // 8), 4, 16, 2, 2),
    lambda row, column: (
        row // 32, column // 8, column % 4, row % 16, column // 4 % 2, row // 16 % 2,
    ),
)  # fmt: skip
"""Tiles of 32 x 8 of which a word has what a lane reads for two rows and two steps of K: what
AITER's `e8m0_shuffle` makes, and hipBLASLt takes as `MATRIX_SCALE_BLK32_UE8M0_32_8_EXT`."""


def in_order(workload: PrimFunc, names: Collection[str], order: Order) -> PrimFunc:
    """The workload with blocks before it that take some parameters, [rows, columns] or batches of
    them, from where they lie in another order."""
    (nest,) = nests(workload)
    before, given, taken = [], [], []
    for rows in workload.params:
        if rows.name not in names:
            given.append(rows)
            continue
        *batches, count, octets = map(int, rows.shape)
        lying = tirx.decl_buffer(
            [*batches, *order.shape(count, octets)], rows.dtype, str(rows.name)
        )
        axes = list(axes_of(rows.shape))
        *which, row, column = places = [axis.var for axis in axes]
        value = tirx.BufferLoad(lying, [*which, *order.place(row, column)])
        before.append(element_wise(f"{rows.name}_rows", axes, rows, places, value))
        given.append(lying)
        taken.append(rows)
    function = replaced(workload, nest, [*before, nest.statement], taken)
    return PrimFunc(given, function.body, function.ret_type, attrs=function.attrs)
