"""The order of instructions: one to three others after each `v_mfma`, and one wait a register step.

LLVM would gather the reads in front, and wait for each.
"""

from __future__ import annotations

from dataclasses import replace

from examples.mfma_gemm import fragments_ahead
from mfmadsl.schedule import Tiling


def tiling(arch: str) -> Tiling:
    """The memory's instructions go where the matrix core is busy anyway."""
    return replace(fragments_ahead.tiling(arch), overlap="all")
