"""Groups of rows of scaled blocks in tiles: each tile has rows of one group, which it finds."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import Expr, PrimFunc, Var

from mfmadsl.passes.tir.walk import mapped
from mfmadsl.schedule.product.added_nest import unique
from mfmadsl.schedule.product.block_scaled import BlockScaledProduct
from mfmadsl.schedule.product.block_scaled_tiles import GroupedNames, sum_in_tiles
from mfmadsl.schedule.product.grouped_tiles import (
    Tables,
    in_tiles,
    rows_stored,
    tables_of,
    tiles_of,
)
from mfmadsl.schedule.product.nest import block_names, substitute
from mfmadsl.schedule.product.scaled_groups import ScaledGroups
from mfmadsl.schedule.product.unread import without_unread
from mfmadsl.schedule.product.whole_tiles import Order


@dataclass(frozen=True)
class TiledScaledGroups:
    """A function with products of scaled blocks, `product`, of a tile of rows each, and the block
    `store` that puts rows where they belong; nothing computes the `tables` yet."""

    function: PrimFunc
    product: BlockScaledProduct
    names: GroupedNames
    store: str
    tables: Tables


@dataclass(frozen=True)
class _OfTiles(BlockScaledProduct):
    """Products of which each has a tile of rows, that of the `tables`, and the matrix of the number
    `matrix`."""

    tables: Tables
    matrix: Var

    def at(self, value: Expr, side: int, s: Expr, row: Expr, along_k: Expr) -> Expr:
        """What is read of A (`side` 0) or B; of A zero where a tile has no rows."""
        first, last, group = (
            tirx.BufferLoad(table, [s])
            for table in (self.tables.first, self.tables.last, self.tables.group)
        )
        _, i, j, k = (axis.var for axis in self.axes)
        # What is counted the passes do not know to be no less than zero.
        known = {k: along_k, self.which: along_k, self.matrix: tirx.max(group, 0)}
        if side == 1:
            return substitute(value, {**known, j: row})
        found = substitute(_counting_up(value), {**known, i: tirx.max(first, 0) + row})
        zero = tirx.const(0, str(found.ty.dtype))
        return tirx.if_then_else(first + row < last, found, zero)


def _counting_up(value: Expr) -> Expr:
    """The value, of which what is read to be an index is no less than zero: scales that lie by
    columns would not tell the passes so."""

    def bounded(load: TensorLoad) -> Expr:
        return tirx.max(load, tirx.const(0, str(load.ty.dtype)))

    def within(load: TensorLoad) -> Expr:
        indices = [mapped(each, (TensorLoad, bounded)) for each in load.indices]
        return tirx.BufferLoad(load.source, indices)

    return mapped(value, (TensorLoad, within))


def tiled_scaled_groups(
    found: ScaledGroups, tiles: tuple[int, int, int], lanes: tuple[int, int], column: Order,
    place: Order,
) -> TiledScaledGroups:  # fmt: skip
    """The function in tiles of so many rows, columns and k; the rest is as `grouped_sum` has it.

    Raises ScheduleError where whole tiles are more than a loop counts.
    """
    n, rows = found.extents[1], tiles[0]
    count = tiles_of(found, rows)
    assert isinstance(count, int)
    taken = block_names(found.function)
    tables = tables_of(found, rows, count, taken)
    plain = found.of_rows(rows, count)
    product = _OfTiles(
        plain.function, plain.nest, plain.axes, plain.elements, plain.scales, plain.which,
        plain.group, plain.inside, tables, found.matrix,
    )  # fmt: skip
    inner = sum_in_tiles(product, tiles, lanes, column, taken)
    store = unique(f"{found.nest.name}_rows", taken)
    stored = rows_stored(found, inner.result, tables, store, (count, rows, n), place)
    function = in_tiles(found, [*inner.statements, stored], inner.allocated, tables)
    function = without_unread(function, found.scaled.inside)
    return TiledScaledGroups(function, plain, inner.names, store, tables)
