"""Large tiles: eight waves for 256 x 256 elements, with the instruction of 32 x 32."""

from __future__ import annotations

from dataclasses import replace

from examples.mfma_gemm import instruction_order
from mfmadsl.schedule import Tiling

_WIDE = {"gfx942": "mfma_f32_32x32x8_f16", "gfx950": "mfma_f32_32x32x16_f16"}


def tiling(arch: str) -> Tiling:
    """For each product three quarters of the reads of the LDS, and half the bytes from the L2."""
    before = instruction_order.tiling(arch)
    return replace(before, block=(256, 256), waves=(2, 4), instruction=_WIDE[arch])
