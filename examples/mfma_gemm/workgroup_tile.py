"""A workgroup's tile: four waves share what is fetched for 128 x 128 elements."""

from __future__ import annotations

from dataclasses import replace

from examples.mfma_gemm import wave_tile
from mfmadsl.schedule import Tiling


def tiling(arch: str) -> Tiling:
    """Each byte from memory is read from the LDS by two waves."""
    return replace(wave_tile.tiling(arch), block=(128, 128), waves=(2, 2))
