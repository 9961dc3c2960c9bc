"""Persistent workgroups: one for each compute unit, which walk over the tiles in the dies' order.

Each of the eight dies has an L2 of its own; the tiles that it takes at a time share their rows.
"""

from __future__ import annotations

from dataclasses import replace

from examples.mfma_gemm import direct_loads, large_tile
from mfmadsl.schedule import Tiling


def tiling(arch: str) -> Tiling:
    """Blocks of eight rows of tiles for each die."""
    before = direct_loads.tiling(arch) if arch == "gfx950" else large_tile.tiling(arch)
    return replace(before, persistent=True, group=8)
