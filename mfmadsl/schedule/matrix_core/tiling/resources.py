"""What a tiling takes of a compute unit: bytes of the LDS, and registers of a lane."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod
from typing import TypeAlias

from mfmadsl.model import Intrinsic, Operand, Tiling
from mfmadsl.passes.main_loop.analysis.halves import LEAST
from mfmadsl.passes.main_loop.analysis.register_use import OTHERS_PAST_LDS
from mfmadsl.passes.tir.expression import WORD

CHUNK = 16
"""Bytes of the widest LDS access of a lane."""

LINE = 128
"""Bytes that are fetched and stored at once."""

_SHIFTED_REGISTERS = 2  # of a chunk that is moved into place: the word behind it, and its offset
_OTHER_REGISTERS = 24  # for addresses, of each stage: what LLVM was seen to need beside the rest


@dataclass(frozen=True)
class Loads:
    """How A and B come from memory: `direct` if all of it may go straight into the LDS, `shifted`
    for each whether its rows start anywhere, so that words are to be moved into place, and `turned`
    for each whether rows are turned around on the way. `scattered` says that rows along K do not
    all begin with a line of memory: short steps share lines."""

    direct: bool = False
    shifted: tuple[bool, bool] = (False, False)
    turned: tuple[bool, bool] = (False, False)
    scattered: bool = False


KBytes: TypeAlias = tuple[float, float]
"""The bytes of one k of a row of A and of a column of B, with the scales or the index of it."""


def k_step_bytes(tiling: Tiling, k_bytes: KBytes, copied: tuple[int, int] | None = None) -> float:
    """The bytes of a step along K of a workgroup's rows of A and columns of B, of which so many
    are `copied`, or all."""
    rows = tiling.block if copied is None else copied
    return tiling.k_step * (rows[0] * k_bytes[0] + rows[1] * k_bytes[1])


def lds_bytes(
    tiling: Tiling, k_bytes: KBytes, intrinsic: Intrinsic, copied: tuple[int, int] | None = None
) -> int:
    """What the tiles of A and B take at least, and the sums that waves share.

    Sums that fit lie where a tile was, unless the workgroup comes back to it for another tile of C.
    """
    tiles = int(intrinsic.blocks * tiling.stages * k_step_bytes(tiling, k_bytes, copied))
    if tiling.k_waves == 1:
        return tiles
    sums = tiling.k_waves * prod(tiling.block) * intrinsic.c.type.bits // 8
    sides = zip(copied or tiling.block, k_bytes, strict=True)
    largest = intrinsic.blocks * tiling.k_step * max(rows * each for rows, each in sides)
    in_tile = tiling.stages and sums <= largest and not tiling.persistent
    return tiles if in_tile else tiles + sums


def sum_registers(tiling: Tiling, intrinsic: Intrinsic) -> int:
    """Registers of a lane for its sums."""
    return prod(_tiles(tiling, intrinsic)) * intrinsic.c.register_count


def _tiles(tiling: Tiling, intrinsic: Intrinsic) -> tuple[int, int]:
    """Tiles of the instruction in a wave's tile."""
    rows, columns = tiling.wave_tile
    return ceil(rows / intrinsic.m), ceil(columns / intrinsic.n)


def is_direct(tiling: Tiling, loads: Loads) -> bool:
    """Whether loads go straight into the LDS."""
    return loads.direct and tiling.stages > 1


def takes_halves(tiling: Tiling, intrinsic: Intrinsic, loads: Loads) -> bool:
    """Whether iterations may take the sums by halves, so loads have half an iteration more."""
    tiles = _tiles(tiling, intrinsic)
    return is_direct(tiling, loads) and tiles[0] % 2 == 0 and prod(tiles) >= 2 * LEAST


def registers(
    tiling: Tiling, intrinsic: Intrinsic, k_bytes: KBytes, loads: Loads,
    copied: tuple[int, int] | None = None,
) -> int:  # fmt: skip
    """What a lane needs: accumulators, fragments of two register steps, and fetched data.

    Of A and B so many rows and columns are `copied`, or all of the tile's.

    What goes into the LDS directly is not fetched, and iterations may take the sums by halves: that
    needs the fragments of two steps of half of A, and of all steps of B.
    """
    if not tiling.stages:
        return registers_past_lds(tiling, intrinsic, k_bytes, copied, 1)
    tiles = _tiles(tiling, intrinsic)
    of_a = tiles[0] * ceil(tiling.k_pack * lane_bytes(intrinsic.a) / WORD)
    of_b = tiles[1] * ceil(tiling.k_pack * lane_bytes(intrinsic.b) / WORD)
    fragments = 2 * (of_a + of_b)
    fetched_bytes = k_step_bytes(tiling, k_bytes, copied) * intrinsic.blocks
    threads = tiling.wave_count * intrinsic.wave_size
    fetched = 0 if is_direct(tiling, loads) else ceil(fetched_bytes / threads / WORD)
    if any(loads.shifted):
        sides = zip(tiling.block, k_bytes, loads.shifted, strict=True)
        shifted = sum(rows * each for rows, each, odd in sides if odd)
        shifted_bytes = shifted * tiling.k_step * intrinsic.blocks
        fetched += ceil(shifted_bytes / threads / CHUNK) * _SHIFTED_REGISTERS
    # What was turned around is swizzled by more bits of a row: reads have more addresses.
    turned = sum(2 * count for count, is_so in zip(tiles, loads.turned, strict=True) if is_so)
    sums = sum_registers(tiling, intrinsic)
    others = _OTHER_REGISTERS * min(tiling.stages, 2)
    if takes_halves(tiling, intrinsic, loads):
        steps = tiling.k_step // (tiling.k_pack * intrinsic.k)
        fragments = min(fragments, of_a + steps * of_b)
    return sums + fragments + fetched + turned + others


def registers_past_lds(
    tiling: Tiling, intrinsic: Intrinsic, k_bytes: KBytes, copied: tuple[int, int] | None, sets: int
) -> int:
    """What a lane needs where fragments come from memory: the loads of so many steps are held."""
    words = words_past_lds(tiling, intrinsic, k_bytes, copied)
    return sum_registers(tiling, intrinsic) + sets * words + OTHERS_PAST_LDS


def words_past_lds(
    tiling: Tiling, intrinsic: Intrinsic, k_bytes: KBytes, copied: tuple[int, int] | None = None
) -> int:
    """Registers of a lane for what it loads in a step along K, past the LDS."""
    sides = zip(tiling.wave_tile, copied or tiling.block, k_bytes, strict=True)
    of_k = sum(min(rows, present) * each for rows, present, each in sides)
    return ceil(of_k * tiling.k_step / tiling.k_waves / intrinsic.wave_size / WORD)


def lane_bytes(operand: Operand) -> int:
    """Bytes of an operand that a lane holds."""
    return operand.layout.elements_per_lane * operand.type.bits // 8


def natural_k_pack(intrinsic: Intrinsic) -> int:
    """The one that makes LDS reads as wide as they can be; of several blocks there is but 1."""
    if intrinsic.blocks > 1:
        return 1
    return max(1, CHUNK // max(lane_bytes(intrinsic.a), lane_bytes(intrinsic.b)))
