"""Where a workgroup finds its queries, if those of batches lie one behind the other.

Batch b begins at row s[b], and its tiles at number s[b] // block + b: that leaves room for as many
as it may have, and needs no sum over the batches before. Tiles that are left find no rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx
from tvm.script.ir_builder import tirx as script
from tvm.tirx import Buffer, Expr

from mfmadsl.schedule.flash_attention.described import PackedQueries
from mfmadsl.schedule.flash_attention.loops import held, loops, named


@dataclass(frozen=True)
class PackedRows:
    """The batch of a workgroup, its first row of all, how many it has, and the number in it of the
    first one of the workgroup, which may be behind them."""

    batch: Expr
    first: Expr
    count: Expr
    group_row: Expr


def tile_count(packed: PackedQueries, block: int) -> Expr:
    """How many tiles of so many rows there are, with those that find none."""
    tiles: Expr = tirx.floordiv(packed.total, block) + packed.batch.extent
    return tiles


def packed_rows(packed: PackedQueries, block: int, tile: Expr, last_first: bool) -> PackedRows:
    """The rows of a tile; of a batch the last ones first, if so said.

    Batches that begin outside of the rows, or before those before them, have none there.
    """
    starts, batches = packed.starts, packed.batch.extent
    number: Buffer = named("batch_number", script.sblock_alloc_buffer((1,), "int32", scope="local"))
    zero = tirx.const(0, "int32")
    script.buffer_store(number, zero, [0])
    for (b,) in loops(batches - 1):
        is_before = tirx.floordiv(starts[b + 1], block) + b + 1 <= tile
        one = tirx.Select(is_before, tirx.const(1, "int32"), zero)
        script.buffer_store(number, number[0] + one, [0])
    batch = held("found_batch", tirx.max(tirx.min(number[0], batches - 1), 0))
    first = held("first", tirx.max(tirx.min(starts[batch], packed.total), 0))
    after = starts[tirx.min(batch + 1, batches)]  # there may be no batch at all
    end = held("end_row", tirx.max(tirx.min(after, packed.total), first))
    own = tile - tirx.floordiv(first, block) - batch
    if last_first:
        own = tirx.floordiv(end - first + (block - 1), block) - 1 - own
    count = end - first
    group_row = tirx.Select(own < 0, count, own * block)
    return PackedRows(batch, first, count, kept("group_row", group_row, packed.total))


def kept(name: str, value: Expr, most: Expr | int) -> Expr:
    """A value from 0 to a number that is computed once.

    What follows reads it as from memory: TVM would compute it anew, and reason about all of it.
    """
    slot: Buffer = named(f"{name}_kept", script.sblock_alloc_buffer((1,), "int32", scope="local"))
    script.buffer_store(slot, value, [0])
    return held(name, tirx.max(tirx.min(slot[0], most), 0))
