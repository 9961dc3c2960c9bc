"""Transposing reads: B lies in the LDS as in memory, and `ds_read_b64_tr_b16` turns it around."""

from __future__ import annotations

from dataclasses import replace

from examples.mfma_gemm import large_tile
from mfmadsl.schedule import Tiling


def tiling(arch: str) -> Tiling:
    """No `v_perm_b32` any more on the way into the LDS."""
    return replace(large_tile.tiling(arch), transposing_reads=True)
