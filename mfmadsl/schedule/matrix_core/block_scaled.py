"""A GEMM of small floats in scaled blocks as a schedule: sums of groups stay in registers.

The matrix cores sum the products of a group of k for a row or a column of tiles, while vector
instructions scale the previous sums and add them to C. So no element is converted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import ModuleType

import tvm
from tvm import s_tir
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from mfmadsl.language import find
from mfmadsl.model import Architecture, Intrinsic, Tiling, unscaled
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.load import load_intrinsic
from mfmadsl.schedule.matrix_core.block_scaled_tiling import block_scaled_tiling
from mfmadsl.schedule.matrix_core.builder import parts_of_k
from mfmadsl.schedule.matrix_core.instruction import counting_up
from mfmadsl.schedule.matrix_core.loop_annotations import annotate_loop
from mfmadsl.schedule.matrix_core.stage import (
    Staged,
    copy_to_lds,
    load_fragments,
    store_by_lanes,
)
from mfmadsl.schedule.matrix_core.store_columns import Columns, columns_of, lies_across
from mfmadsl.schedule.matrix_core.tile_loops import bind_copy, of_tile, per_lane, tiled
from mfmadsl.schedule.product.block_scaled import BlockScaledProduct
from mfmadsl.schedule.product.block_scaled_tiles import GroupedNames, grouped_sum
from mfmadsl.schedule.product.dataflow import (
    check_bound,
    check_compact,
    check_consumers,
    check_producers,
    check_written_once,
    unrelated,
)
from mfmadsl.schedule.product.epilogue import fold_epilogue, fold_into_total
from mfmadsl.schedule.product.inline import inline_producers
from mfmadsl.schedule.product.nest import function_of
from mfmadsl.schedule.product.plain import BlockRead
from mfmadsl.schedule.product.sum_of_products import product_nest
from mfmadsl.schedule.tensor_intrin import init_loop
from mfmadsl.tvm_refusal import tvm_refusal


def block_scaled_schedule(
    product: BlockScaledProduct, intrinsic: Intrinsic | str | None, tiling: Tiling | None,
    chip: Architecture,
) -> Schedule:  # fmt: skip
    """What `gemm_schedule` gives for a product in scaled blocks. Raises ScheduleError as that
    does."""
    function = product.function
    check_compact(function)
    check_written_once(function)
    check_producers(function, product.nest)
    check_consumers(function, product.nest.store.buffer)
    taken = block_scaled_tiling(product, intrinsic, tiling, chip)
    instruction = counting_up(unscaled(find(taken.instruction)))
    tile = load_intrinsic(instruction, taken.k_pack)
    with tvm_refusal("workload", ScheduleError):
        columns = columns_in_tiles(product, tile, taken, chip)
        parts, length = parts_of_scaled(product, taken)
        tiles = *taken.block, parts * length
        grouped = grouped_sum(product, tiles, (tile.M, tile.N), columns.column, columns.place)
        sch = s_tir.Schedule(tvm.IRModule({"main": grouped.function}))
        for other in unrelated(grouped.function, product_nest(grouped.function, product.nest.name)):
            sch.compute_inline(sch.get_sblock(other.name))
        BlockScaledBuilder(sch, product, grouped.names, tile, columns, taken, chip).build()
    check_bound(function_of(sch))
    return sch


def parts_of_scaled(product: BlockScaledProduct, tiling: Tiling) -> tuple[int, int]:
    """(the parts that workgroups share, how many k each has): groups that share scales are not
    parted, so that a part's first scale is a first one of those."""
    of_step, k = tiling.k_step, product.extents[3]
    if tiling.split_k > 1:
        of_step *= product.alike
    return parts_of_k(replace(tiling, k_step=of_step), k)


def columns_in_tiles(
    product: BlockScaledProduct, tile: ModuleType, tiling: Tiling, chip: Architecture
) -> Columns:
    """The order in which tiles take columns of C: in turn where rows of B lie along K, and tiles
    store C as it is."""
    n, tiles = product.extents[2], tiling.wave_tile[1] // tile.N
    if product.memories[1].axis != "k" or tiling.split_k > 1 or not lies_across(tile):
        return Columns(tile.N, 1)
    return columns_of(product.result, n, tiles, tile.N, chip.line_bytes)


@dataclass(frozen=True)
class BlockScaledBuilder:
    """The primitives. A wave holds fragments of the shorter side of its tile for a whole step, and
    goes along the longer one: of rows of A across columns of B, or the other way round."""

    sch: Schedule
    product: BlockScaledProduct
    names: GroupedNames
    tile: ModuleType
    columns: Columns
    tiling: Tiling
    chip: Architecture

    @property
    def _across(self) -> bool:
        rows, columns = self.tiling.wave_tile
        return rows <= columns

    @property
    def _reads(self) -> tuple[BlockRead, BlockRead]:
        a, b = self.product.memories
        return BlockRead("A", 0, Fraction(1), 1, a), BlockRead("B", 1, Fraction(1), 1, b)

    def build(self) -> None:
        """Apply all primitives."""
        sch, tile = self.sch, self.tile
        sums, total = sch.get_sblock(self.names.sums), sch.get_sblock(self.names.total)
        parts, total = self._parts(total)
        wave, step, held, moving, inner = self._cut(total)
        at = (held, moving) if self._across else (moving, held)
        of_sides = [
            (sch.get_sblock(name), loop)
            for name, loop, scale in zip(self.names.scales, at, self.product.scales, strict=True)
            if scale is not None
        ]
        staged = [sch.cache_read(block, 0, "shared") for block, _ in of_sides]
        sch.compute_at(sums, moving, preserve_unit_loops=True)
        for block, loop in of_sides:
            sch.compute_at(block, loop, preserve_unit_loops=True)
        group = self._blockized(sums)
        copies = [
            copy_to_lds(sch, group, place, read, Columns(1, 1), step, self.tiling, self.chip, 1)
            for place, read in enumerate(self._reads)
        ]
        for place, (read, copy) in enumerate(zip(self._reads, copies, strict=True)):
            load_fragments(sch, group, place, read, tile, at[place], copy)
        for block in staged:
            sch.compute_at(block, step, preserve_unit_loops=True)
            inline_producers(sch, block)
            bind_copy(
                sch, [sch.fuse(*sch.get_loops(block)[-2:])], self.tiling.wave_count, self.chip
            )

        # A lane has the same places of sums, scales and C in registers.
        of_lanes = [block for block, _ in of_sides]
        for block in (group, *of_lanes):
            sch.set_scope(block, 0, "warp")
            in_registers = of_tile(tile.index_map_C, 4, several=False)
            sch.transform_layout(block, ("write", 0), in_registers)
        store = sch.cache_write(total, 0, "warp")
        if (columns := self.columns).in_turn:
            sch.transform_layout(store, ("write", 0), lambda s, i, j: (s, i, columns.column(j)))
        sch.reverse_compute_at(store, wave, preserve_unit_loops=True)
        store_by_lanes(sch, store, tile, columns)
        for block in of_lanes:
            self._deal(tiled(sch, block, tile, tile.M, tile.N)[1])
        self._deal(inner)

        init = sch.decompose_reduction(group, sch.get_loops(group)[-1])
        sch.tensorize(init_loop(sch, sch.get_child_blocks(init)[0], [tile.M, tile.N]), tile.FILL)
        sch.tensorize(sch.get_loops(sums)[-3], tile.COMPUTE)
        sch.decompose_reduction(total, step)
        self._finish(store, parts)
        self._annotate(step, copies)

    def _finish(self, store: SBlockRV, parts: SBlockRV | None) -> None:
        """Fold what follows into the block that stores the result, or that adds up its parts."""
        if parts is None:
            fold_epilogue(self.sch, store)
        else:
            fold_into_total(self.sch, parts)

    def _bind_grid(self, layer: LoopRV, row: LoopRV, column: LoopRV) -> None:
        """Share the tiles of C among workgroups."""
        self.sch.bind(layer, "blockIdx.z")
        self.sch.bind(row, "blockIdx.y")
        self.sch.bind(column, "blockIdx.x")

    def _annotate(self, step: LoopRV, copies: Sequence[Staged]) -> None:
        """What the passes are told."""
        annotate_loop(self.sch, step, self.tiling, self.chip, self._padded(copies))

    def _padded(self, copies: Sequence[Staged]) -> list[str]:
        """The tiles of which rows past the edges may hold anything."""
        pairs = zip(self.product.extents[1:3], self.tiling.block, strict=True)
        ragged = [extent % size != 0 for extent, size in pairs]
        found = [each.name for each in copies if ragged[each.side] and not each.masked]
        return found if len({each.name for each in copies}) == len(copies) else []

    def _parts(self, total: SBlockRV) -> tuple[SBlockRV | None, SBlockRV]:
        """(the block that adds up parts of K, None where it is not split; that of each part)."""
        parts, _ = parts_of_scaled(self.product, self.tiling)
        if parts == 1:
            return None, total
        share, _ = self.sch.split(self.sch.get_loops(total)[-1], [parts, None])
        return total, self.sch.rfactor(share, 0)

    def _cut(self, total: SBlockRV) -> tuple[LoopRV, LoopRV, LoopRV, LoopRV, list[LoopRV]]:
        """The loops of a wave, of groups of k, of what is held in registers for one, and of tiles
        that are multiplied one after the other; and those of a tile of C."""
        sch, tiling, tile = self.sch, self.tiling, self.tile
        s, i, j, *share, step = sch.get_loops(total)
        step, once = sch.split(step, [None, 1])  # the tiles in the LDS are of `step`
        of_wave = tiling.wave_tile
        i_block, i_wave, i, i_tile = sch.split(
            i, [None, tiling.waves[0], of_wave[0] // tile.M, tile.M]
        )
        j_block, j_wave, j, j_tile = sch.split(
            j, [None, tiling.waves[1], of_wave[1] // tile.N, tile.N]
        )
        held, moving = (i, j) if self._across else (j, i)
        lead, of_waves = (*share, s), (i_wave, j_wave)
        sch.reorder(*lead, i_block, j_block, *of_waves, step, once, moving, held, i_tile, j_tile)
        self._bind_grid(sch.fuse(*lead) if share else s, i_block, j_block)
        wave = sch.fuse(*of_waves)
        sch.bind(wave, "threadIdx.y")
        return wave, step, once, moving, [i_tile, j_tile]

    def _blockized(self, sums: SBlockRV) -> SBlockRV:
        """A block of one instruction's tile of the sums of a group."""
        sch, tile = self.sch, self.tile
        rows, columns, k_loop = sch.get_loops(sums)[-3:]
        rows, row = sch.split(rows, [None, tile.M])
        columns, column = sch.split(columns, [None, tile.N])
        k_step, k_tile = sch.split(k_loop, [None, tile.K])
        sch.reorder(rows, columns, k_step, row, column, k_tile)
        group: SBlockRV = sch.blockize(row)
        return group

    def _deal(self, loops: Sequence[LoopRV]) -> None:
        """Have each lane compute the places of a tile of C that it has."""
        lane, _ = per_lane(self.sch, loops, self.tile.c_slot)
        self.sch.bind(lane, "threadIdx.x")
