"""Loads in flight: what the next step needs is on its way from memory while this one computes."""

from __future__ import annotations

from dataclasses import replace

from examples.mfma_gemm import swizzle
from mfmadsl.schedule import Tiling


def tiling(arch: str) -> Tiling:
    """It waits in registers until all waves have read the tile in the LDS."""
    return replace(swizzle.tiling(arch), overlap="loads")
