"""The primitives of `gemm_schedule`: tiles in the LDS, fragments in registers, TensorIntrins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from mfmadsl.model import Architecture, Intrinsic, Tiling
from mfmadsl.schedule.load import load_intrinsic
from mfmadsl.schedule.matrix_core.loop_annotations import annotate_loop
from mfmadsl.schedule.matrix_core.padding import check_padded
from mfmadsl.schedule.matrix_core.stage import (
    Staged,
    copy_to_lds,
    lies_turned,
    load_fragments,
    load_from_memory,
    store_by_lanes,
)
from mfmadsl.schedule.matrix_core.store_columns import (
    Columns,
    columns_of,
    lies_across,
    take_in_turn,
    with_column,
)
from mfmadsl.schedule.product.epilogue import add_up_waves, fold_epilogue, fold_into_total
from mfmadsl.schedule.product.last_workgroup import CutTotal, fold_into_last
from mfmadsl.schedule.product.memory import Extent, number
from mfmadsl.schedule.product.plain import PlainProduct
from mfmadsl.schedule.tensor_intrin import init_loop


@dataclass(frozen=True)
class Builder:
    """The primitives that make a schedule of a product in its plain form.

    The module of `intrinsic` reads and multiplies what the product's block does.
    """

    sch: Schedule
    product: PlainProduct
    intrinsic: Intrinsic
    tiling: Tiling
    chip: Architecture

    def build(self) -> None:
        """Apply all primitives."""
        sch, tiling, blocks = self.sch, self.tiling, self.intrinsic.blocks
        tile, reads = load_intrinsic(self.intrinsic, tiling.k_pack), self.product.reads
        total, of_waves, main = self._parts()
        columns = self._columns(total or of_waves, tile)
        if columns.in_turn:
            take_in_turn(sch, main, [n for n, each in enumerate(reads) if each.side == 1], columns)
        outer, loops = self._cut(main, tile)
        workgroup, wave, k_step, register_step = loops
        if of_waves is not None:
            sch.set_scope(main, 0, "shared")
        orders = Columns(tile.M, 1), columns
        tiles = self._bring(outer, tile, orders, k_step, register_step)
        sums = sch.cache_write(outer, 0, "warp")
        if columns.in_turn:
            axes = len(sch.get(sums).iter_vars)
            sch.transform_layout(sums, ("write", 0), with_column(columns.column, axes, axes - 1))
        sch.reverse_compute_at(sums, wave, preserve_unit_loops=True)
        init = sch.decompose_reduction(outer, k_step)
        store_by_lanes(sch, sums, tile, columns)
        extents = [*([blocks] if blocks > 1 else []), tile.M, tile.N]
        sch.tensorize(sch.get_loops(main)[-len(extents) - 1], tile.COMPUTE)
        sch.tensorize(init_loop(sch, sch.get_child_blocks(init)[0], extents), tile.FILL)
        result = sums
        if of_waves is not None:
            threads = tiling.wave_count, self.chip.wave_size
            result = add_up_waves(sch, of_waves, workgroup, threads)
        self._finish(result, total)
        self._annotate(k_step, tiles)

    def _bring(
        self, outer: SBlockRV, tile: ModuleType, orders: Sequence[Columns], k_step: LoopRV,
        register_step: LoopRV,
    ) -> list[Staged]:  # fmt: skip
        """Bring what a block of one instruction's tile reads into registers, by way of the LDS
        where there is a stage: what lies in it."""
        sch, reads, tiling = self.sch, self.product.reads, self.tiling
        if not tiling.stages:
            for place, read in enumerate(reads):
                load_from_memory(sch, outer, place, read, orders[read.side], tile, k_step)
            return []
        tiles = [
            copy_to_lds(
                sch,
                outer,
                place,
                read,
                orders[read.side],
                k_step,
                tiling,
                self.chip,
                self.intrinsic.blocks,
                number(self.product.extents[1 + read.side]),
            )
            for place, read in enumerate(reads)
        ]
        for place, (read, staged) in enumerate(zip(reads, tiles, strict=True)):
            load_fragments(sch, outer, place, read, tile, register_step, staged)
        return tiles

    def _finish(self, result: SBlockRV, total: SBlockRV | None) -> None:
        """Fold what follows into the block that stores the result, or that adds up its parts."""
        tiling = self.tiling
        if total is None:
            fold_epilogue(self.sch, result)
        elif tiling.one_launch:
            blocks, threads = self.intrinsic.blocks, (tiling.wave_count, self.chip.wave_size)
            fold_into_last(self.sch, total, CutTotal((blocks, *tiling.block), threads))
        else:
            fold_into_total(self.sch, total)

    def _columns(self, total: SBlockRV | None, tile: ModuleType) -> Columns:
        """The order in which tiles take columns of C: in turn only what they store as it is, or
        what they load from memory, of which a lane has neighbours."""
        tiling, rows = self.tiling, self.tiling.block[1]
        loads = not tiling.stages
        turned = not loads and any(
            lies_turned(each.memory, tiling, self.chip, each.size, rows)
            for each in self.product.reads
            if each.side == 1
        )
        parted = total is not None and not loads
        if parted or self.intrinsic.blocks > 1 or turned or not lies_across(tile):
            return Columns(tile.N, 1)
        columns = number(self.product.extents[2])
        tiles = tiling.wave_tile[1] // tile.N
        line = self.chip.line_bytes
        return columns_of(self.product.result, columns, tiles, tile.N, line, all_of_them=loads)

    def _parts(self) -> tuple[SBlockRV | None, SBlockRV | None, SBlockRV]:
        """(the block that adds up the parts of K of workgroups, that which adds up those of their
        waves, the block to tensorize); None where K is not split."""
        sch, main, tiling = self.sch, self.product.block, self.tiling
        parts, length = parts_of_k(tiling, number(self.product.extents[3]))
        if not self.product.in_whole_tiles:
            tiles = [self.intrinsic.blocks, *tiling.block, length * parts]
            check_padded(self.product, tiles)
            sch.pad_einsum(main, tiles)
        total = of_waves = None
        if parts > 1:
            share, _ = sch.split(sch.get_loops(main)[3], [parts, None])
            total, main = main, sch.rfactor(share, 0)
            s, i, j, share, k_loop = sch.get_loops(main)
            sch.reorder(share, s, i, j, k_loop)
        if tiling.k_waves > 1:
            *outer, k_loop = sch.get_loops(main)
            of_wave = tiling.k_step // tiling.k_waves
            _, share, _ = sch.split(k_loop, [None, tiling.k_waves, of_wave])
            of_waves, main = main, sch.rfactor(share, 0)
            *outer, step, share, k_loop = sch.get_loops(main)
            sch.reorder(share, *outer, step, k_loop)
        return total, of_waves, main

    def _cut(
        self, main: SBlockRV, tile: ModuleType
    ) -> tuple[SBlockRV, tuple[LoopRV, LoopRV, LoopRV, LoopRV]]:
        """The tiles of workgroups, waves and instructions; (a block of one instruction's tile, the
        loops of a workgroup, of a wave, of steps along K, and of register steps)."""
        sch, tiling = self.sch, self.tiling
        loops = sch.get_loops(main)
        shares = [loops.pop(0)] if tiling.k_waves > 1 else []
        if not shares:
            loops[-1:] = sch.split(loops[-1], [None, tiling.k_step])
        *lead, i, j, k0, k = loops
        inner = []
        if self.intrinsic.blocks > 1:
            lead[-1], several = sch.split(lead[-1], [None, self.intrinsic.blocks])
            inner.append(several)
        i, i_tile = sch.split(i, [None, tile.M])
        j, j_tile = sch.split(j, [None, tile.N])
        k1, k_tile = sch.split(k, [None, tile.K])
        inner += [i_tile, j_tile, k_tile]
        sch.reorder(*lead, *shares, i, j, k0, k1, *inner)
        outer = sch.blockize(inner[0])
        i0, i1, i2 = sch.split(i, [None, tiling.waves[0], tiling.wave_tile[0] // tile.M])
        j0, j1, j2 = sch.split(j, [None, tiling.waves[1], tiling.wave_tile[1] // tile.N])
        sch.reorder(i0, j0, *shares, i1, j1, k0, k1, i2, j2)
        self._bind_grid(sch.fuse(*lead) if len(lead) > 1 else lead[0], i0, j0)
        wave = sch.fuse(*shares, i1, j1)
        sch.bind(wave, "threadIdx.y")
        return outer, (j0, wave, k0, k1)

    def _bind_grid(self, layer: LoopRV, row: LoopRV, column: LoopRV) -> None:
        """Share the tiles of C among workgroups: neighbours along blockIdx.y share columns."""
        self.sch.bind(layer, "blockIdx.z")
        self.sch.bind(row, "blockIdx.y")
        self.sch.bind(column, "blockIdx.x")

    def _annotate(self, k_step: LoopRV, tiles: Sequence[Staged]) -> None:
        """What the passes are told."""
        rows = zip(self.product.extents[1:3], self.tiling.block, strict=True)
        ragged = [not _is_multiple(extent, tile) for extent, tile in rows]
        # TVM would make one condition of an edge and a mask.
        padded = [each.name for each in tiles if ragged[each.side] and not each.masked]
        blocks = self.intrinsic.blocks
        whole = blocks == 1 or _is_multiple(self.product.extents[0], blocks)
        apart = whole and len({each.name for each in tiles}) == len(tiles)
        annotate_loop(self.sch, k_step, self.tiling, self.chip, padded if apart else ())


def parts_of_k(tiling: Tiling, k: int | None) -> tuple[int, int]:
    """(the parts that workgroups share, how many k each has or one step where K is not split)."""
    if k is None or tiling.split_k == 1:
        return tiling.split_k, tiling.k_step
    # Parts of equal length: rounding up may leave fewer of them than were asked for.
    steps = -(-k // tiling.k_step)
    part = -(-steps // tiling.split_k)
    return -(-steps // part), part * tiling.k_step


def _is_multiple(extent: Extent, tile: int) -> bool:
    """Whether an extent is a number of whole tiles, as far as is known."""
    return isinstance(extent, int) and extent % tile == 0
