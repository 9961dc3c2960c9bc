"""What a GEMM with some tiling takes at least, at a glance.

It is what the busiest compute unit multiplies, loads and moves through its LDS, at the highest
clock. `cost` estimates no less, in fifty times the time: most tilings are slower than the fastest
by so much that this tells.
"""

from __future__ import annotations

from math import ceil, prod

from mfmadsl.model import Tiling
from mfmadsl.schedule.matrix_core.tiling.gemm_on_chip import GemmOnChip


def floor_seconds(gemm: GemmOnChip, tiling: Tiling) -> float:
    """Seconds that no launch of a GEMM with this tiling beats."""
    product, chip, intrinsic = gemm.product, gemm.chip, gemm.intrinsic
    (height, width), k_step, blocks = tiling.block, tiling.k_step, intrinsic.blocks
    layers = ceil(gemm.batches / blocks) * tiling.split_k
    tiles = ceil(gemm.m / height) * ceil(gemm.n / width) * layers
    most = ceil(ceil(tiles / product.dies) / product.units_of_die)
    steps = ceil(ceil(gemm.k / k_step) / tiling.split_k)
    each = intrinsic.m * intrinsic.n * intrinsic.k * chip.simds
    matrix = height * width * k_step * dict(intrinsic.cycles)[chip.name] / each
    of_a, of_b = gemm.loaded
    depth = min(k_step, gemm.k) * blocks
    loaded = (min(height, gemm.m) * of_a + min(width, gemm.n) * of_b) * depth
    cycles = max(matrix, loaded / chip.l1_bytes_per_cycle if tiling.stages else 0.0)
    if tiling.stages:
        rows, columns = tiling.wave_tile
        of_a, of_b = gemm.k_bytes
        read = (rows * of_a + columns * of_b) * prod(tiling.waves) * k_step * blocks
        cycles = max(cycles, read / chip.lds_bytes_per_cycle)
    return most * steps * cycles / product.clock / 1e6
