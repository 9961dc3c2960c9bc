"""What a step asks the vector L1 for, and when."""

from __future__ import annotations

from mfmadsl.model import Tiling
from mfmadsl.passes.main_loop.analysis.register_use import (
    FEW_WORDS,
    FROM_MEMORY,
    MANY_ITERATIONS,
)
from mfmadsl.passes.tir.expression import WORD
from mfmadsl.schedule.matrix_core.tiling import resources
from mfmadsl.schedule.matrix_core.tiling.gemm_on_chip import GemmOnChip


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


def asks_late(
    gemm: GemmOnChip, tiling: Tiling, copied: tuple[int, int], products: float, few_loads: bool
) -> bool:
    """Whether loads of a tile with one place in the LDS come in the next step, as the vector L1 has
    no lines for them beside the others (`Parts.late`).

    It is not so where loads take longer than the `products` of a step, in cycles; and where there
    are so few that those of two steps are in flight, if one finds all of its lines.
    """
    chip = gemm.chip
    if tiling.stages != 1:
        return False
    own = resources.k_step_bytes(tiling, gemm.k_bytes, copied) * gemm.intrinsic.blocks
    has_lines = own <= chip.l1_bytes if gemm.made else own < chip.l1_bytes
    if few_loads and has_lines:
        return False
    if products < own / chip.l1_bytes * FROM_MEMORY * chip.l2_latency:
        return False
    lds = resources.lds_bytes(tiling, gemm.k_bytes, gemm.intrinsic, copied)
    return own > chip.l1_bytes / max(1, chip.lds_bytes // lds)
