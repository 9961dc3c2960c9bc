"""Direct loads: `buffer_load_dwordx4 ... lds` fills the second of two tiles, past the registers."""

from __future__ import annotations

from dataclasses import replace

from examples.mfma_gemm import transposing_reads
from mfmadsl.schedule import Tiling


def tiling(arch: str) -> Tiling:
    """The loads of a whole step stay under way over its barriers: waits count them."""
    return replace(transposing_reads.tiling(arch), stages=2)
