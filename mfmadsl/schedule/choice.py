"""What is chosen if nobody says: the instruction, and the tiling.

The rules are those of the docstrings below; docs/gemm.md has them with examples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import ceil

from mfmadsl.language import library
from mfmadsl.model import Architecture, Intrinsic
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.tiling import (
    MOST_STAGES,
    Loads,
    Tiling,
    check_tiling,
    makes_gemm,
    natural_k_pack,
)

_UNKNOWN_EXTENT = 256  # what an extent that is known at run time only is taken for
_ROW_BYTES = (256, 128)  # two cache lines of K a step, or one
_LONG_SHARE = 0.6  # of the LDS that a tile of two may take
_BLOCKS = (256, 128, 64, 32, 16, 8, 4)
_UNEVEN = {
    ((256, 224), 1): (8, 1), ((224, 256), 1): (1, 8), ((256, 192), 1): (4, 2),
    ((192, 256), 1): (2, 4), ((256, 176), 1): (8, 1), ((176, 256), 1): (1, 8),
    ((320, 160), 2): (2, 2), ((160, 320), 2): (2, 2), ((256, 192), 2): (2, 2),
    ((192, 256), 2): (2, 2), ((224, 224), 2): (2, 2), ((192, 192), 2): (2, 2),
}  # fmt: skip
"""Large tiles that are no powers of two, and how many there are in the LDS: waves."""

_STEP_OVERHEAD = 64  # cycles of a step that two barriers cost
_TILE_OVERHEAD = 3000  # cycles of a tile in which nothing is multiplied: first fetch, last store
_LOADED_LATENCY = 2500  # cycles from a load to its data, with its transfer, of a busy HBM
_LEAST_STEPS = 4  # of a workgroup that shares a tile's K, or walks over tiles
_ROUNDS = 4  # of tiles for each compute unit, from which on workgroups are persistent


@dataclass(frozen=True)
class Shape:
    """The extents of a product; None where they are known at run time only."""

    m: int | None
    n: int | None
    k: int | None
    batches: int | None = 1


def candidates(a_type: str, b_type: str, arch: str) -> list[Intrinsic]:
    """The instructions of a chip that multiply such elements, and make a GEMM; fastest first.

    Of equally fast ones the one with the larger tile comes first.
    """
    found = [
        i
        for i in library().values()
        if isinstance(i, Intrinsic)
        and arch in i.chips
        and (i.a.type.name, i.b.type.name) == (a_type, b_type)
        and i.blocks == 1
        and not i.sparse
        and makes_gemm(i)
    ]
    return sorted(found, key=lambda i: (-throughput(i, arch), -i.m, -i.k, i.name))


def throughput(intrinsic: Intrinsic, arch: str) -> float:
    """Multiplications and additions in a cycle of one SIMD."""
    each = intrinsic.m * intrinsic.n * intrinsic.k
    return intrinsic.blocks * each / dict(intrinsic.cycles)[arch]


def choose_instruction(a_type: str, b_type: str, arch: str, rows: int | None) -> Intrinsic:
    """The fastest; but the smaller tile where a matrix has no more than 16 rows.

    Raises ScheduleError, with what there is, if the chip has no such instruction.
    """
    found = candidates(a_type, b_type, arch)
    if not found:
        between = " and ".join(dict.fromkeys((a_type, b_type)))
        raise ScheduleError(
            f"{arch} has no matrix instruction for {between} that a GEMM can be made of; "
            f"see `mfmadsl list --arch {arch}`"
        )
    if rows is not None and rows <= 16:
        small = [i for i in found if i.m == 16]
        return small[0] if small else found[0]
    return found[0]


def smaller_one(intrinsic: Intrinsic, arch: str) -> Intrinsic | None:
    """An instruction that is as fast for the same types and sums, and has a smaller tile."""
    alike = candidates(intrinsic.a.type.name, intrinsic.b.type.name, arch)
    for other in alike:
        if (
            other.m < intrinsic.m
            and other.c.type == intrinsic.c.type
            and throughput(other, arch) == throughput(intrinsic, arch)
        ):
            return other
    return None


def default_tiling(
    shape: Shape, intrinsic: Intrinsic, chip: Architecture, element_bytes: int, loads: Loads,
    smaller: Intrinsic | None = None,
) -> Tiling:  # fmt: skip
    """The legal tiling that should take the fewest cycles, by a simple model of the chip.

    It is one of `intrinsic`, or of `smaller` where a tile is no whole number of the other's.

    A step of a workgroup takes as long as the slowest of its matrix instructions, its LDS accesses
    and its bytes from memory, and something for the barriers. A tile is its steps and something for
    its ends; the GEMM takes as many rounds of tiles as there are more tiles than compute units.

    If that leaves more than half of the compute units idle, K is split until they are not, as long
    as each share has four steps; K has to be known for it. From four rounds of tiles of four steps
    on, workgroups are persistent.
    """
    m, n, k = (extent or _UNKNOWN_EXTENT for extent in (shape.m, shape.n, shape.k))
    batches = ceil((shape.batches or 1) / intrinsic.blocks)
    best: tuple[float, int, Tiling] | None = None
    for tiling in (
        *_legal(intrinsic, chip, element_bytes, k, loads),
        *_uneven(intrinsic, smaller, chip, element_bytes, k, loads),
    ):
        tiles = ceil(m / tiling.block[0]) * ceil(n / tiling.block[1]) * batches
        of = intrinsic if tiling.instruction == intrinsic.name or smaller is None else smaller
        cycles = _cycles(tiling, of, chip, element_bytes, k)
        total = ceil(tiles / chip.compute_units) * cycles
        # Of equally fast ones that which reads the least from memory.
        found = total, sum(tiling.block), tiling
        if best is None or found[:2] < best[:2]:
            best = found
    if best is None:
        raise ScheduleError(f"no tiling for {intrinsic.name} fits {chip.name}")
    tiling = best[2]
    tiles = ceil(m / tiling.block[0]) * ceil(n / tiling.block[1]) * batches
    steps = ceil(k / tiling.k_step)
    split = max(1, min(chip.compute_units // tiles, steps // _LEAST_STEPS)) if shape.k else 1
    persistent = split == 1 and tiles >= _ROUNDS * chip.compute_units and steps >= _LEAST_STEPS
    tiling = replace(tiling, split_k=split, persistent=persistent)
    sharing = ceil(tiles * split / chip.compute_units)
    return _deepened(tiling, intrinsic, chip, element_bytes, loads, sharing)


def _deepened(
    tiling: Tiling, intrinsic: Intrinsic, chip: Architecture, element_bytes: int, loads: Loads,
    sharing: int,
) -> Tiling:  # fmt: skip
    """The tiling with as many stages as it takes to hide the memory of a chip under load.

    More stages must not keep away any of so many workgroups that share a compute unit.
    """
    if tiling.stages == 1 or not loads.direct:
        return tiling
    step = _cycles(tiling, intrinsic, chip, element_bytes, tiling.k_step) - _TILE_OVERHEAD
    found = tiling
    while found.stages < MOST_STAGES and (found.stages - 1) * step < _LOADED_LATENCY:
        deeper = replace(found, stages=found.stages + 1)
        held = [
            chip.lds_bytes // each.lds_bytes(element_bytes, intrinsic.blocks)
            for each in (tiling, deeper)
        ]
        if held[1] < min(sharing, held[0]):
            break
        try:
            check_tiling(deeper, intrinsic, chip, element_bytes, tiling.split_k, loads)
        except ScheduleError:
            break
        found = deeper
    return found


def _legal(
    intrinsic: Intrinsic, chip: Architecture, element_bytes: int, k: int, loads: Loads
) -> Iterator[Tiling]:
    stages = (2, 1) if chip.wide_loads_to_lds else (1,)
    for block_m, block_n, stage in product(_BLOCKS, _BLOCKS, stages):
        waves = _waves(block_m, block_n, intrinsic)
        if waves is not None:
            yield from _steps((block_m, block_n), waves, stage, intrinsic, chip, element_bytes, k,
                              loads)  # fmt: skip


def _uneven(
    intrinsic: Intrinsic, smaller: Intrinsic | None, chip: Architecture, element_bytes: int, k: int,
    loads: Loads,
) -> Iterator[Tiling]:  # fmt: skip
    """The legal ones of large tiles that are no powers of two."""
    for (block, stages), waves in _UNEVEN.items():
        if (stages == 2) != chip.wide_loads_to_lds or intrinsic.blocks > 1:
            continue
        found = list(_steps(block, waves, stages, intrinsic, chip, element_bytes, k, loads))
        if not found and smaller is not None:
            found += _steps(block, waves, stages, smaller, chip, element_bytes, k, loads)
        yield from found


def _steps(
    block: tuple[int, int], waves: tuple[int, int], stages: int, intrinsic: Intrinsic,
    chip: Architecture, element_bytes: int, k: int, loads: Loads,
) -> Iterator[Tiling]:  # fmt: skip
    """The legal tilings of a block, with one cache line of K a step or two."""
    k_pack = natural_k_pack(intrinsic)
    least = 2 * k_pack * intrinsic.k * element_bytes
    for wanted in _ROW_BYTES:
        row_bytes = max(wanted, least)
        while row_bytes > least and row_bytes // 2 >= k * element_bytes:
            row_bytes //= 2
        k_step = row_bytes // element_bytes
        tiling = Tiling(block, k_step, waves, intrinsic.name, k_pack, stages=stages)
        share = tiling.lds_bytes(element_bytes, intrinsic.blocks) / chip.lds_bytes
        if wanted > _ROW_BYTES[1] and (share > _LONG_SHARE or (stages == 1 and loads.direct)):
            continue
        try:
            check_tiling(tiling, intrinsic, chip, element_bytes, 1, loads)
        except ScheduleError:
            continue
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


def _cycles(
    tiling: Tiling, intrinsic: Intrinsic, chip: Architecture, element_bytes: int, k: int
) -> float:
    """A workgroup's, for one tile."""
    row_bytes = tiling.k_step * element_bytes
    rows = sum(tiling.block) * intrinsic.blocks
    multiplications = tiling.block[0] * tiling.block[1] * tiling.k_step * intrinsic.blocks
    simds = min(chip.simds, tiling.wave_count)
    matrix = multiplications / throughput(intrinsic, chip.name) / simds
    read = sum(tiling.wave_tile) * intrinsic.blocks * row_bytes * tiling.wave_count
    lds = (read + rows * row_bytes) / chip.lds_bytes_per_cycle
    memory = rows * row_bytes / chip.l2_bytes_per_cycle
    step = max(matrix, lds, memory) + _STEP_OVERHEAD / tiling.stages
    return ceil(k / tiling.k_step) * step + _TILE_OVERHEAD
