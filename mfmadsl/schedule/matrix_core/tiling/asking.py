"""What a step asks the vector L1 for, and when."""

from __future__ import annotations

from math import ceil

from mfmadsl.model import Tiling
from mfmadsl.passes.main_loop.analysis.register_use import (
    FEW_WORDS,
    MANY_ITERATIONS,
)
from mfmadsl.passes.tir.expression import WORD
from mfmadsl.schedule.matrix_core.tiling.gemm_on_chip import GemmOnChip

_LANE_ROW = 256  # bytes that 16 lanes load, of which each has the next one's words


def bytes_behind(gemm: GemmOnChip, tiling: Tiling) -> float:
    """Bytes of the lines that a step asks for once more, where rows start anywhere: the word behind
    them is loaded by itself, for each row of lanes that know each other's, unless that is aligned.
    """
    found = 0.0
    if not any(gemm.loads.shifted):
        return found
    for read in gemm.reads:
        if not gemm.loads.shifted[read.side] or read.stored:
            continue
        across = min(tiling.block[read.side], (gemm.m, gemm.n)[read.side])
        sides = across, min(tiling.k_step, gemm.k)
        rows, length = sides if read.together is None else sides[::-1]
        found += rows * ceil(length * read.k_bytes / _LANE_ROW) * (1 - read.k_bytes / WORD)
    return found * gemm.chip.line_bytes * gemm.intrinsic.blocks


def asked_bytes(gemm: GemmOnChip, tiling: Tiling) -> float:
    """Bytes of lines that the loads of fragments of a step ask for, past the LDS."""
    fragment, extents = tiling.k_pack * gemm.intrinsic.k, (gemm.m, gemm.n)
    asked = 0.0
    for read in gemm.reads:
        rows = min(tiling.block[read.side], extents[read.side])
        of_wave = read.asked_bytes(
            rows / tiling.waves[read.side], tiling.k_step // tiling.k_waves, fragment,
            gemm.chip.line_bytes,
        )  # fmt: skip
        asked += of_wave * tiling.wave_count
    return asked


def has_few_loads(
    gemm: GemmOnChip, tiling: Tiling, copied: tuple[int, int], steps: int, direct: bool
) -> bool:
    """Whether the loads of two steps may be in flight, which go through registers."""
    # What may go straight into the LDS should: it takes no registers.
    if direct or gemm.loads.direct or steps < MANY_ITERATIONS:
        return False
    threads = tiling.wave_count * gemm.chip.wave_size
    # One register at least for each array.
    words = (
        max(1.0, copied[read.side] * tiling.k_step * source / threads / WORD)
        for read in gemm.reads
        for source in read.sources
    )
    return sum(words) <= FEW_WORDS
