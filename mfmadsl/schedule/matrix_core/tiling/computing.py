"""What threads do with a step's loads on their way into the LDS."""

from __future__ import annotations

from mfmadsl.model import Tiling
from mfmadsl.schedule.matrix_core.tiling.gemm_on_chip import GemmOnChip

_SIMD_LANES = 16  # that a SIMD computes in a cycle
_TOGETHER = 8  # elements that a thread computes and puts


def work_of(gemm: GemmOnChip, tiling: Tiling, copied: tuple[int, int]) -> float:
    """Cycles in which one SIMD computes the elements of a step that are not loaded as such, of the
    rows and columns that are `copied`."""
    if not gemm.made:
        return 0.0
    each = sum(copied[read.side] * read.work for read in gemm.reads)
    return each * tiling.k_step * gemm.intrinsic.blocks / _SIMD_LANES


def is_uneven(gemm: GemmOnChip, tiling: Tiling, copied: tuple[int, int]) -> bool:
    """Whether some threads have more to compute than others."""
    threads = tiling.wave_count * gemm.chip.wave_size
    elements = (copied[side] * tiling.k_step for side in gemm.made)
    return any(each % (threads * _TOGETHER) for each in elements)


def turned_bytes(gemm: GemmOnChip, tiling: Tiling) -> float:
    """Of a thread in a step: what lies across its tile in memory, and has to be turned."""
    if not any(gemm.loads.turned):
        return 0.0
    sides = zip(tiling.block, gemm.loads.turned, gemm.k_bytes, strict=True)
    rows = sum(own * each for own, is_turned, each in sides if is_turned)
    threads = tiling.wave_count * gemm.chip.wave_size
    return rows * tiling.k_step * gemm.intrinsic.blocks / threads
