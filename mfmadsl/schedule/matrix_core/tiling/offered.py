"""The tilings that are worth a look: sizes that kernels of matrix cores are known to be good at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import ceil, log2

from mfmadsl.model import Architecture, Intrinsic, Tiling
from mfmadsl.schedule.matrix_core.tiling.legal import MOST_STAGES, is_legal
from mfmadsl.schedule.matrix_core.tiling.resources import (
    KBytes,
    Loads,
    natural_k_pack,
)

_ROW_BYTES = (2048, 1024, 512, 256, 128)  # cache lines of K a step: a few, or one
_LONG_ROWS = 64  # of A and B together, up to which a tile may have more than two
_LONG_IN_REGISTERS = 80  # where what is loaded is turned or computed before it is in the LDS
_BLOCKS = (256, 128, 64, 32, 16, 8, 4)
_UNEVEN = {
    ((256, 224), 1): (8, 1), ((224, 256), 1): (1, 8), ((256, 192), 1): (4, 2),
    ((192, 256), 1): (2, 4), ((256, 176), 1): (8, 1), ((176, 256), 1): (1, 8),
    ((320, 160), 2): (2, 2), ((160, 320), 2): (2, 2), ((256, 192), 2): (2, 2),
    ((192, 256), 2): (2, 2), ((224, 224), 2): (2, 2), ((192, 192), 2): (2, 2),
}  # fmt: skip
"""Large tiles that are no powers of two, and how many there are in the LDS: waves."""


@lru_cache(maxsize=64)
def offered(
    intrinsic: Intrinsic, chip: Architecture, k_bytes: KBytes, k: int, loads: Loads
) -> tuple[Tiling, ...]:
    """Legal tilings of an instruction; of tiles that go straight into the LDS with two stages."""
    return tuple(_offered(intrinsic, chip, k_bytes, k, loads))


@lru_cache(maxsize=64)
def in_stages(
    intrinsic: Intrinsic, chip: Architecture, k_bytes: KBytes, k: int, loads: Loads
) -> tuple[tuple[Tiling, tuple[Tiling, ...]], ...]:
    """Each of the tilings that are `offered`, and it with as many stages as it may have."""
    found = []
    for tiling in offered(intrinsic, chip, k_bytes, k, loads):
        deeper = range(2, MOST_STAGES + 1) if loads.direct and tiling.stages > 1 else (1,)
        steps = ceil(k / tiling.k_step)
        legal: list[Tiling] = []
        # Of so many parts and steps as are looked at, any number is legal or none.
        for stages in deeper:
            variant = replace(tiling, stages=stages)
            if not is_legal(variant, intrinsic, chip, k_bytes, steps, loads):
                break
            legal.append(variant)
        found.append((tiling, tuple(legal)))
    return tuple(found)


def _offered(
    intrinsic: Intrinsic, chip: Architecture, k_bytes: KBytes, k: int, loads: Loads
) -> Iterator[Tiling]:
    stages = (2, 1) if chip.wide_loads_to_lds else (1,)
    for block_m, block_n, stage in product(_BLOCKS, _BLOCKS, stages):
        waves = _waves(block_m, block_n, intrinsic)
        if waves is not None:
            yield from _steps((block_m, block_n), waves, stage, intrinsic, chip, k_bytes, k, loads)
    for (block, stage), waves in _UNEVEN.items():
        is_usual = (stage == 2) == (chip.wide_loads_to_lds and loads.direct)
        if (is_usual or (stage == 1 and loads.scattered)) and intrinsic.blocks == 1:
            yield from _steps(block, waves, stage, intrinsic, chip, k_bytes, k, loads)


def _steps(
    block: tuple[int, int], waves: tuple[int, int], stages: int, intrinsic: Intrinsic,
    chip: Architecture, k_bytes: KBytes, k: int, loads: Loads,
) -> Iterator[Tiling]:  # fmt: skip
    """The legal tilings of a block, with one cache line of K a step or more."""
    k_pack, widest = natural_k_pack(intrinsic), max(k_bytes)
    least = 2 * k_pack * intrinsic.k * widest
    by_registers = any(loads.turned) or (chip.wide_loads_to_lds and not loads.direct)
    most = _LONG_IN_REGISTERS if by_registers else _LONG_ROWS
    for wanted in _ROW_BYTES if sum(block) <= most else _ROW_BYTES[-2:]:
        row_bytes = max(wanted, least)
        while row_bytes > least and row_bytes // 2 >= k * widest:
            row_bytes //= 2
        k_step = 1 << round(log2(row_bytes / widest))
        tiling = Tiling(block, k_step, waves, intrinsic.name, k_pack, stages=stages)
        if wanted > _ROW_BYTES[-1] and stages == 1 and loads.direct and not loads.scattered:
            continue
        if is_legal(tiling, intrinsic, chip, k_bytes, 1, loads):
            yield tiling


def _waves(block_m: int, block_n: int, intrinsic: Intrinsic) -> tuple[int, int] | None:
    """Four waves, eight where four would keep all their registers for sums; as square as can be."""
    least = intrinsic.m, intrinsic.n
    if block_m < least[0] or block_n < least[1]:
        return None
    words = max(1, intrinsic.c.type.bits // 32)
    wanted = 8 if block_m * block_n * words >= 256 * 256 else 4
    along_m = along_n = 1
    while along_m * along_n < wanted:
        room_m, room_n = block_m // along_m > least[0], block_n // along_n > least[1]
        if not room_m and not room_n:
            break
        if room_n and (not room_m or block_n // along_n >= block_m // along_m):
            along_n *= 2
        else:
            along_m *= 2
    return along_m, along_n
