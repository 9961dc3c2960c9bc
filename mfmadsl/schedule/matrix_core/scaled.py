"""The primitives of a GEMM of scaled operands: four tiles in the LDS, four fragments in registers.

The scales are operands like A and B: of each row a byte for each group of k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from mfmadsl.model import Architecture, Intrinsic, Tiling
from mfmadsl.schedule.load import load_intrinsic
from mfmadsl.schedule.matrix_core.loop_annotations import annotate_loop
from mfmadsl.schedule.matrix_core.stage import bind_copy, chunks_along_k, store_by_lanes, tiled
from mfmadsl.schedule.matrix_core.store_columns import Columns
from mfmadsl.schedule.product.epilogue import fold_epilogue
from mfmadsl.schedule.product.inline import inline_producers
from mfmadsl.schedule.product.scaled import group_of
from mfmadsl.schedule.tensor_intrin import init_loop

_READS = ("A", "SCALE_A", "B", "SCALE_B")
"""What the block reads, in the order of its regions."""


@dataclass(frozen=True)
class ScaledBuilder:
    """The primitives that make a schedule of `block`, a scaled product in whole tiles.

    `extents` are M, N and K of what is no padding.
    """

    sch: Schedule
    block: SBlockRV
    extents: tuple[int, int, int]
    intrinsic: Intrinsic
    tiling: Tiling
    chip: Architecture

    def build(self) -> None:
        """Apply all primitives."""
        sch, main = self.sch, self.block
        tile = load_intrinsic(self.intrinsic)
        outer, (wave, k_step, register_step) = self._cut(tile)
        tiles = [self._copy_to_lds(outer, operand, k_step) for operand in range(len(_READS))]
        for operand, name in enumerate(_READS):
            self._load_fragments(outer, operand, name, tile, register_step)
        sums = sch.cache_write(outer, 0, "warp")
        sch.reverse_compute_at(sums, wave, preserve_unit_loops=True)
        init = sch.decompose_reduction(outer, k_step)
        store_by_lanes(sch, sums, tile, Columns(tile.N, 1))
        sch.tensorize(sch.get_loops(main)[-3], tile.COMPUTE)
        zeros = sch.get_child_blocks(init)[0]
        sch.tensorize(init_loop(sch, zeros, [tile.M, tile.N]), tile.FILL)
        fold_epilogue(sch, sums)
        self._annotate(k_step, tiles)

    def _cut(self, tile: ModuleType) -> tuple[SBlockRV, tuple[LoopRV, LoopRV, LoopRV]]:
        """The tiles of workgroups, waves and instructions; (a block of one instruction's tile, the
        loops of a wave, of steps along K, and of register steps)."""
        sch, tiling = self.sch, self.tiling
        i, j, k = sch.get_loops(self.block)
        k_step, k = sch.split(k, [None, tiling.k_step])
        i, i_tile = sch.split(i, [None, tile.M])
        j, j_tile = sch.split(j, [None, tile.N])
        register_step, k_tile = sch.split(k, [None, tile.K])
        sch.reorder(i, j, k_step, register_step, i_tile, j_tile, k_tile)
        outer = sch.blockize(i_tile)
        i0, i1, i2 = sch.split(i, [None, tiling.waves[0], tiling.wave_tile[0] // tile.M])
        j0, j1, j2 = sch.split(j, [None, tiling.waves[1], tiling.wave_tile[1] // tile.N])
        sch.reorder(i0, j0, i1, j1, k_step, register_step, i2, j2)
        sch.bind(i0, "blockIdx.y")
        sch.bind(j0, "blockIdx.x")
        wave = sch.fuse(i1, j1)
        sch.bind(wave, "threadIdx.y")
        return outer, (wave, k_step, register_step)

    def _copy_to_lds(self, block: SBlockRV, operand: int, step: LoopRV) -> str:
        """Copy the tile of an operand, [rows, bytes], into the LDS in each step; its name there."""
        sch, tiling = self.sch, self.tiling
        shared = sch.cache_read(block, operand, "shared")
        sch.compute_at(shared, step, preserve_unit_loops=True)
        inline_producers(sch, shared)
        rows, octets = sch.get_loops(shared)[-2:]
        counts = [int(sch.get(loop).extent) for loop in (rows, octets)]
        threads = tiling.wave_count * self.chip.wave_size
        straight = tiling.stages > 1 and self.chip.wide_loads_to_lds
        inner = chunks_along_k(sch, rows, octets, counts, 1, threads, straight)
        bind_copy(sch, inner, tiling, self.chip)
        return str(sch.get(shared).writes[0].source.name)

    def _load_fragments(
        self, block: SBlockRV, operand: int, name: str, tile: ModuleType, step: LoopRV
    ) -> None:
        """Load an operand from the LDS into registers in each register step."""
        sch, intrinsic = self.sch, self.intrinsic
        registers = sch.cache_read(block, operand, "warp")
        sch.compute_at(registers, step, preserve_unit_loops=True)
        is_a = name.endswith("A")
        rows, bits = (tile.M, intrinsic.a.type.bits) if is_a else (tile.N, intrinsic.b.type.bits)
        octets = tile.K // tile.GROUP if name.startswith("SCALE") else tile.K * bits // 8
        # Modules call a B that lies [rows, k] transposed.
        suffix = "" if is_a else "_TRANSPOSED"
        _, loops = tiled(sch, registers, tile, rows, octets)
        index_map = getattr(tile, f"index_map_{name}{suffix.lower()}")
        sch.transform_layout(registers, ("write", 0), index_map)
        sch.tensorize(loops[0], getattr(tile, f"LOAD_{name}{suffix}_SHARED"))

    def _annotate(self, k_step: LoopRV, tiles: Sequence[str]) -> None:
        """What the passes are told."""
        sides = zip(self.extents[:2], self.tiling.block, strict=True)
        whole = [extent % size == 0 for extent, size in sides]
        padded = [name for place, name in enumerate(tiles) if not whole[place // 2]]
        annotate_loop(self.sch, k_step, self.tiling, self.chip, padded)


def scaled_lds_bytes(tiling: Tiling, intrinsic: Intrinsic) -> int:
    """What the tiles of A, of B and of their scales take of the LDS."""
    bits = [operand.type.bits + 8 / group_of(intrinsic) for operand in (intrinsic.a, intrinsic.b)]
    rows = sum(size * each for size, each in zip(tiling.block, bits, strict=True))
    return int(rows * tiling.k_step * tiling.stages) // 8
