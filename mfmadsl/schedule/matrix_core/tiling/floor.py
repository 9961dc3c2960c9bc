"""What a GEMM with some tiling takes at least, at a glance.

It is what the busiest compute unit multiplies, loads and moves through its LDS, at the highest
clock. `cost` estimates no less, in fifty times the time: most tilings are slower than the fastest
by so much that this tells.
"""

from __future__ import annotations

from math import ceil, prod

from mfmadsl.model import Tiling
from mfmadsl.schedule.matrix_core.tiling.gemm_on_chip import GemmOnChip


def matrix_cycles(gemm: GemmOnChip, tiling: Tiling) -> float:
    """Cycles of all matrix instructions of a step, on one matrix core."""
    intrinsic = gemm.intrinsic
    each = intrinsic.m * intrinsic.n * intrinsic.k
    cycles = dict(intrinsic.cycles)[gemm.chip.name]
    return tiling.block[0] * tiling.block[1] * tiling.k_step / each * cycles


def most_tiles(gemm: GemmOnChip, tiles: int) -> int:
    """Tiles of the busiest compute unit, of so many."""
    return ceil(ceil(tiles / gemm.product.dies) / gemm.product.units_of_die)


def floor_seconds(gemm: GemmOnChip, tiling: Tiling) -> float:
    """Seconds that no launch of a GEMM with this tiling beats."""
    chip, (height, width), blocks = gemm.chip, tiling.block, gemm.intrinsic.blocks
    layers = ceil(gemm.batches / blocks) * tiling.split_k
    tiles = ceil(gemm.m / height) * ceil(gemm.n / width) * layers
    steps = ceil(ceil(gemm.k / tiling.k_step) / tiling.split_k)
    cycles = matrix_cycles(gemm, tiling) / chip.simds
    if tiling.stages:
        (rows, columns), (of_a, of_b) = tiling.wave_tile, gemm.k_bytes
        read = (rows * of_a + columns * of_b) * prod(tiling.waves) * tiling.k_step * blocks
        of_a, of_b = gemm.loaded
        depth = min(tiling.k_step, gemm.k) * blocks
        loaded = (min(height, gemm.m) * of_a + min(width, gemm.n) * of_b) * depth
        cycles = max(cycles, read / chip.lds_bytes_per_cycle, loaded / chip.l1_bytes_per_cycle)
    return most_tiles(gemm, tiles) * steps * cycles / gemm.product.clock / 1e6
