"""Tilings of no stages: fragments come from memory into registers, past the LDS.

They are for products of few rows, such as a model's with the weights of a token, whose operands are
computed of what is loaded: waves share nothing of B, so that the LDS and its barriers only cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import ceil

from mfmadsl.model import DEFAULT_OVERLAP, Intrinsic, Tiling
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.tiling.gemm_on_chip import GemmOnChip
from mfmadsl.schedule.matrix_core.tiling.legal import is_legal
from mfmadsl.schedule.matrix_core.tiling.resources import natural_k_pack

_ROWS = 16  # of the smallest tile that is as fast as others
_COLUMNS = (32, 64, 128)  # of a wave
_K_WAVES = (4, 8, 16)
_REGISTER_STEPS = (1, 2, 4)  # of a wave, in a step along K
_LEAST_ELEMENTS = 64  # of B, that a lane computes in a step: they share scales and zero points
_PARTS = (1, 2, 3, 4, 6, 8)  # in which workgroups share K
_LEAST_STEPS = 2  # of a workgroup


def past_lds(gemm: GemmOnChip, one_launch: bool) -> Iterator[Tiling]:
    """The legal tilings of no stages that are worth a look: of a single tile of rows, where B is
    computed of what is loaded. Workgroups share K only where that takes `one_launch`."""
    intrinsic, chip = gemm.intrinsic, gemm.chip
    if 1 not in gemm.made or not gemm.m <= intrinsic.m < 2 * max(_ROWS, gemm.m):
        return
    if intrinsic.blocks > 1 or gemm.statistics_rows:
        return
    k_pack, together = natural_k_pack(intrinsic), _rows_of_place(gemm)
    for columns, waves, register_steps, split in product(
        _COLUMNS, _K_WAVES, _REGISTER_STEPS, _PARTS if one_launch else (1,)
    ):
        if columns < together * intrinsic.n:
            continue  # several lanes would take each word apart
        if columns * register_steps * k_pack * intrinsic.k < _LEAST_ELEMENTS * intrinsic.wave_size:
            continue
        k_step = register_steps * k_pack * intrinsic.k * waves
        steps = ceil(gemm.k / k_step)
        if steps % split or steps // split < _LEAST_STEPS:
            continue
        tiling = Tiling(
            (intrinsic.m, columns), k_step, (1, 1), intrinsic.name, k_pack, stages=0,
            split_k=split, k_waves=waves, one_launch=split > 1,
        )  # fmt: skip
        if is_legal(tiling, intrinsic, chip, gemm.k_bytes, steps, gemm.loads):
            yield tiling


def _rows_of_place(gemm: GemmOnChip) -> float:
    """How many columns of B a place of memory has, of the array that has most of it."""
    stored = [each for read in gemm.reads if read.side == 1 for each in read.stored]
    return 1 / max(stored, key=lambda each: each.k_bytes).per_row if stored else 1.0


def check_past_lds(tiling: Tiling, intrinsic: Intrinsic, k: int | None, statistics: int) -> None:
    """Raise ScheduleError for a tiling of no stages that cannot be, for so many k, if they are
    known, and rows of `statistics` that are added up ahead of the loop."""
    if tiling.stages:
        return
    said = "tiling: stages=0:"
    if k is None:
        raise ScheduleError(f"{said} fragments come from memory in so many steps as are known, but"
                            " K is a symbol")  # fmt: skip
    if intrinsic.blocks > 1:
        raise ScheduleError(f"{said} {intrinsic.name} multiplies {intrinsic.blocks} blocks at once")
    if tiling.persistent:
        raise ScheduleError(f"{said} no workgroup walks over tiles: say persistent=False, too")
    if tiling.overlap != DEFAULT_OVERLAP:
        raise ScheduleError(f"{said} overlap={tiling.overlap} is for tiles in the LDS")
    if statistics:
        raise ScheduleError(f"{said} statistics of rows are in the LDS")
