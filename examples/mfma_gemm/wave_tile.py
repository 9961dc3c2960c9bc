"""A wave's tile: 4 x 4 tiles of the instruction, so that each fragment is multiplied four times."""

from __future__ import annotations

from dataclasses import replace

from examples.mfma_gemm import one_instruction
from mfmadsl.schedule import Tiling


def tiling(arch: str) -> Tiling:
    """64 x 64 sums take 64 registers of each lane."""
    return replace(one_instruction.tiling(arch), block=(64, 64))
