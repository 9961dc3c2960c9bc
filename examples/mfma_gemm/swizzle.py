"""The swizzle: rows lie in the LDS such that lanes which read at once meet in no bank."""

from __future__ import annotations

from dataclasses import replace

from examples.mfma_gemm import k_packing
from mfmadsl.schedule import Tiling


def tiling(arch: str) -> Tiling:
    """It costs no LDS, as padding would, and a few instructions ahead of the loop."""
    return replace(k_packing.tiling(arch), swizzle=True)
