"""k-packing: a lane reads 16 bytes of K at a time, which is K for two instructions.

gfx950 has an instruction that takes them all at once.
"""

from __future__ import annotations

from dataclasses import replace

from examples.mfma_gemm import workgroup_tile
from mfmadsl.schedule import Tiling


def tiling(arch: str) -> Tiling:
    """`ds_read_b128` where there was `ds_read_b64`."""
    before = workgroup_tile.tiling(arch)
    if arch == "gfx950":
        return replace(before, instruction="mfma_f32_16x16x32_f16")
    return replace(before, k_pack=2)
