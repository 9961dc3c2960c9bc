"""What it takes to add up the parts of a split K, in a launch of its own or in the same one."""

from __future__ import annotations

from math import ceil

from mfmadsl.model import Tiling
from mfmadsl.schedule.matrix_core.tiling.gemm_on_chip import GemmOnChip
from mfmadsl.schedule.product.last_workgroup import MOST_LOADED

_TURNS = 2  # ways to memory, one after the other, before the last workgroup of a tile loads parts


def adding_up(gemm: GemmOnChip, tiling: Tiling, tiles: int, tile_bytes: float) -> float:
    """Seconds from when the parts of so many tiles are made, of so many bytes each, to the result;
    none where K is not split."""
    if tiling.split_k == 1:
        return 0.0
    if tiling.one_launch:
        return _by_last(gemm, tiling, tiles, tile_bytes)
    product, elements = gemm.product, gemm.m * gemm.n * gemm.batches
    read = elements * tiling.split_k * gemm.sum_bytes
    moved = (read + elements * gemm.result_bytes) / product.reached_bandwidth
    return (product.launch + moved + 2 * product.memory_latency) / 1e9


def _by_last(gemm: GemmOnChip, tiling: Tiling, tiles: int, tile_bytes: float) -> float:
    """Seconds in which the last workgroup of a tile adds up its parts: what it has stored gets to
    memory, it counts itself, reads the parts and stores, while few others do anything."""
    product = gemm.product
    share = min(tiling.split_k / tiles, product.unit_share)
    read = tile_bytes * tiling.split_k
    moved = read / (product.reached_bandwidth * share)
    threads = tiling.wave_count * gemm.chip.wave_size
    turns = _TURNS + ceil(read / gemm.sum_bytes / threads / MOST_LOADED)
    return (moved + turns * product.memory_latency) / 1e9
