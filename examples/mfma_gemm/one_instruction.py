"""One instruction: a workgroup of one wave computes 16 x 16 elements, one `v_mfma` at a time."""

from __future__ import annotations

from mfmadsl.schedule import Tiling


def tiling(arch: str) -> Tiling:
    """Of a step along K everything is fetched, put into the LDS, read and multiplied in turn."""
    del arch  # gfx950 has the instructions of gfx942, too
    return Tiling(
        block=(16, 16),
        k_step=64,
        waves=(1, 1),
        instruction="mfma_f32_16x16x16_f16",
        k_pack=1,
        swizzle=False,
        overlap="nothing",
        transposing_reads=False,
        group=1,
    )
