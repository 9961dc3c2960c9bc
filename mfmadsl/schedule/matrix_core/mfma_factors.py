"""Default tile factors for `mfma_schedule`."""

from __future__ import annotations

from dataclasses import dataclass

from mfmadsl.model import Intrinsic
from mfmadsl.schedule.error import ScheduleError

_WAVE_TILE = 64  # rows and columns of C that one wave keeps in registers, at most
_WAVES = 2  # waves along each of M and N, at most
_STEP_BYTES = 64  # of each row of A and of each column of B that one LDS step holds, at most


@dataclass(frozen=True)
class Factors:
    """What `mfma_schedule` takes as i_factors, j_factors and k_factors."""

    i: tuple[int, int, int, int, int]
    j: tuple[int, int, int, int, int]
    k: tuple[int, int, int]


def default_factors(intrinsic: Intrinsic, m: int, n: int, k: int) -> Factors:
    """Blocks of up to 128x128, four waves of up to 64x64, as far as the shape allows.

    Raises ScheduleError if m, n or k is no multiple of the instruction's.
    """
    step = _STEP_BYTES * 8 // intrinsic.a.type.bits // intrinsic.k
    k_tiles = _tiles("K", k, intrinsic.k)
    k1 = _largest_divisor(k_tiles, step)
    return Factors(
        i=_spread(_tiles("M", m, intrinsic.m), intrinsic.m),
        j=_spread(_tiles("N", n, intrinsic.n), intrinsic.n),
        k=(k_tiles // k1, k1, 1),
    )


def _spread(tiles: int, size: int) -> tuple[int, int, int, int, int]:
    """(grid x, grid y, waves, tiles of a wave, 1)."""
    of_wave = _largest_divisor(tiles, _WAVE_TILE // size)
    waves = _largest_divisor(tiles // of_wave, _WAVES)
    return tiles // of_wave // waves, 1, waves, of_wave, 1


def _tiles(dimension: str, extent: int, tile: int) -> int:
    if extent < 1 or extent % tile:
        raise ScheduleError(f"{dimension}={extent} is no multiple of the instruction's {tile}")
    return extent // tile


def _largest_divisor(number: int, limit: int) -> int:
    return max(d for d in range(1, max(limit, 1) + 1) if number % d == 0)
