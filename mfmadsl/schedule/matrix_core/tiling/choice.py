"""What is chosen if nobody says: the instruction, and the tiling.

The rules are those of the docstrings below; docs/gemm.md has them with examples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, inf

from mfmadsl.language import library
from mfmadsl.model import Architecture, Intrinsic, Tiling, product_of
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.tiling.columns_together import ANY_COLUMNS, ColumnsTogether
from mfmadsl.schedule.matrix_core.tiling.cost import estimate
from mfmadsl.schedule.matrix_core.tiling.fastest import MAY_BE_FASTEST, Estimated, fastest_of
from mfmadsl.schedule.matrix_core.tiling.floor import floor_seconds
from mfmadsl.schedule.matrix_core.tiling.gemm_on_chip import GemmOnChip
from mfmadsl.schedule.matrix_core.tiling.legal import is_legal, makes_gemm
from mfmadsl.schedule.matrix_core.tiling.occupancy import has_registers, resident
from mfmadsl.schedule.matrix_core.tiling.offered import in_stages
from mfmadsl.schedule.matrix_core.tiling.past_lds import past_lds
from mfmadsl.schedule.matrix_core.tiling.reads import MemoryRead, k_bytes_of
from mfmadsl.schedule.matrix_core.tiling.resources import KBytes, Loads

_UNKNOWN_EXTENT = 256  # what an extent that is known at run time only is taken for
_LONG_ROW = 1024  # bytes of a step along K
_LEAST_STEPS = 4  # of a workgroup that shares a tile's K, or walks over tiles
_ROUNDS = 4  # of tiles for each compute unit, from which on workgroups are persistent
_MOST_WAVES = 8  # of a workgroup whose waves share K
_MADE_STEP = 64  # of k, that a wave takes at least where it makes elements of what it loads
_MADE_ALONE = 128  # of k, where rows of A do not fill a tile: there is less to wait for
_LONE_WAVES = 16  # of one that computes elements, where compute units are idle
_BUSY = 0.9  # of the compute units, up to which that pays
_SHARING = 4  # workgroups for each compute unit, up to which waves may share K
_PARTED = 2  # workgroups for each compute unit, up to which they share K
_PARTED_MADE = 4  # where they compute elements: several small ones hide what each waits for
_PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # in which K may be split


@dataclass(frozen=True)
class ProductShape:
    """What of a product the time of a tiling depends on.

    Extents are None where they are known at run time only; an element of C has `result_bytes`, and
    a wave stores some of its columns `together`. Each workgroup adds up statistics of some rows. In
    `one_launch` the last workgroup of a tile may add up what others have left. Fragments may come
    from memory, `past_lds`.
    """

    m: int | None
    n: int | None
    k: int | None
    batches: int | None
    reads: tuple[MemoryRead, ...]
    result_bytes: int
    loads: Loads
    together: ColumnsTogether = ANY_COLUMNS
    statistics_rows: int = 0
    one_launch: bool = False
    past_lds: bool = False

    @property
    def k_bytes(self) -> KBytes:
        """The bytes of one k of A and B."""
        return k_bytes_of(self.reads)


@lru_cache(maxsize=64)
def candidates(a_type: str, b_type: str, arch: str) -> tuple[Intrinsic, ...]:
    """The instructions of a chip that multiply such elements, and make a GEMM; fastest first.

    Ties go to the larger tile.
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
    return tuple(sorted(found, key=lambda i: (-throughput(i, arch), -i.m, -i.k, i.name)))


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
        hint = _other_types(a_type, b_type, arch)
        raise ScheduleError(
            f"{arch} has no matrix instruction for {between} that a GEMM can be made of{hint}; "
            f"see `mfmadsl list --arch {arch}`"
        )
    if rows is not None and rows <= 16:
        small = [i for i in found if i.m == 16]
        return small[0] if small else found[0]
    return found[0]


def _other_types(a_type: str, b_type: str, arch: str) -> str:
    """What a chip has instead: its own eight-bit floats, or one type for both operands."""
    asked = [dtype for dtype in (a_type, b_type) if dtype.startswith("float8_e")]
    types = {i.a.type.name for i in library().values() if arch in i.chips}
    own = sorted(name for name in types if name.startswith("float8_e"))
    if asked and not own:
        return ": it has no eight-bit floats"
    if not set(asked) <= set(own):
        return f": its eight-bit floats are {' and '.join(own)}"
    if a_type == b_type or not {a_type, b_type} <= types:
        return ""
    return ": a block before the product may convert one to the type of the other"


def equally_fast(intrinsic: Intrinsic, arch: str) -> list[Intrinsic]:
    """Other instructions that are as fast for the same types and sums, the largest tile first."""
    return [
        other
        for other in candidates(intrinsic.a.type.name, intrinsic.b.type.name, arch)
        if other.name != intrinsic.name
        and other.c.type == intrinsic.c.type
        and throughput(other, arch) == throughput(intrinsic, arch)
    ]


def default_tiling(
    shape: ProductShape, intrinsics: Sequence[Intrinsic], chip: Architecture
) -> Tiling:
    """The legal tiling of one of the instructions that should take the least time on the chip.

    Raises ScheduleError if none fits.
    """
    found = estimated(shape, intrinsics, chip, MAY_BE_FASTEST)
    if not found:
        raise ScheduleError(f"no tiling for {intrinsics[0].name} fits {chip.name}")
    return fastest_of(found)


def estimated(
    shape: ProductShape, intrinsics: Sequence[Intrinsic], chip: Architecture, share: float = inf
) -> list[Estimated]:
    """The legal tilings of the instructions that are worth a look, with the time of each; and of
    those that surely take more than so many times the least time none has to be among them.

    The time is that of `cost`, which knows of the chip what the profiler does.

    K is split, which has to be known for it, if that is faster and each part has four steps. Of
    few workgroups for each compute unit, more waves share the steps of K. From
    four rounds of tiles of four steps on, workgroups are persistent where a compute unit holds no
    more than one of them.
    """
    found: list[Estimated] = []
    fastest = least = inf
    for gemm, tiling in _worth_a_look(shape, intrinsics, chip):
        if floor_seconds(gemm, tiling) > share * least:
            continue
        each = estimate(gemm, tiling)
        if each.unlimited < fastest:
            fastest, least = each.unlimited, min(least, each.seconds)
        found.append((each, tiling))
    return found


def _worth_a_look(
    shape: ProductShape, intrinsics: Sequence[Intrinsic], chip: Architecture
) -> Iterator[tuple[GemmOnChip, Tiling]]:
    usable = [each for each in intrinsics if shape.together.are_held_by(each)] or intrinsics
    least = min(each.m for each in usable), min(each.n for each in usable)
    for intrinsic in intrinsics:
        gemm = gemm_on(shape, intrinsic, chip)
        for tiling, deeper in in_stages(intrinsic, chip, shape.k_bytes, gemm.k, shape.loads):
            if not _fits(tiling.block, (gemm.m, gemm.n), least) or _is_too_long(tiling, gemm):
                continue
            for variant in _variants(tiling, deeper, gemm, shape):
                if shape.together.are_kept_by(variant, intrinsic):
                    yield gemm, variant
        if shape.past_lds and shape.k is not None:
            for variant in past_lds(gemm, shape.one_launch):
                if shape.together.are_kept_by(variant, intrinsic):
                    yield gemm, variant


def gemm_on(shape: ProductShape, intrinsic: Intrinsic, chip: Architecture) -> GemmOnChip:
    """What the time is estimated of; the chip is the product that is meant by its name."""
    m, n, k = (extent or _UNKNOWN_EXTENT for extent in (shape.m, shape.n, shape.k))
    return GemmOnChip(
        m, n, k, shape.batches or 1, shape.reads, shape.result_bytes, intrinsic, chip,
        product_of(chip.name), shape.loads, shape.statistics_rows,
    )  # fmt: skip


def _fits(block: tuple[int, int], extents: tuple[int, int], least: tuple[int, int]) -> bool:
    """Whether no side of a tile is twice as long as it has to be."""
    sides = zip(block, extents, least, strict=True)
    return all(size < 2 * extent or size <= one for size, extent, one in sides)


def _is_too_long(tiling: Tiling, gemm: GemmOnChip) -> bool:
    """Whether a step has very long rows where several workgroups of a compute unit, each with
    shorter ones, hide what they wait for."""
    tiles = _tiles(tiling, (ceil(gemm.batches / gemm.intrinsic.blocks), gemm.m, gemm.n, gemm.k))
    is_long = tiling.k_step * max(gemm.k_bytes) > _LONG_ROW and tiling.k_step < gemm.k
    return is_long and tiles > gemm.chip.compute_units


def _variants(
    tiling: Tiling, deeper: Sequence[Tiling], gemm: GemmOnChip, shape: ProductShape
) -> Iterator[Tiling]:
    """The tiling with more stages, and where compute units would idle with K in several parts: of
    workgroups, and of waves where those are few."""
    extents = ceil(gemm.batches / gemm.intrinsic.blocks), gemm.m, gemm.n, gemm.k
    tiles, steps = _tiles(tiling, extents), ceil(gemm.k / tiling.k_step)
    units = gemm.chip.compute_units
    most = _PARTED_MADE if gemm.made else _PARTED
    some = (1,) if shape.k is None else parts_worth_a_look(tiling, extents, gemm.chip, most)
    for parts in some:
        if gemm.made and steps % parts:
            continue  # one part would be shorter, and all would ask in each step where theirs ends
        walks = parts == 1 and tiles >= _ROUNDS * units and steps >= _LEAST_STEPS
        together = shape.one_launch and parts > 1
        for each in deeper:
            variant = replace(each, split_k=parts, one_launch=together) if parts > 1 else each
            if tiles * parts <= _SHARING * units or gemm.made:
                yield from _with_more_waves(variant, gemm, steps, _MOST_WAVES)
            if tiles * parts <= _BUSY * units and gemm.made:
                more = _with_more_waves(variant, gemm, steps, _LONE_WAVES)
                yield from (each for each in more if has_registers(gemm, each))
            persistent = walks and resident(gemm, variant) == 1
            yield replace(variant, persistent=True) if persistent else variant


def parts_worth_a_look(
    tiling: Tiling, extents: tuple[int, int, int, int], chip: Architecture, most: int = _PARTED
) -> Iterator[int]:
    """In how many parts workgroups may share K, of s, M, N and K: as long as there are at most so
    many for each compute unit, and each part has some steps."""
    tiles, steps = _tiles(tiling, extents), ceil(extents[3] / tiling.k_step)
    for parts in _PARTS:
        is_many = tiles * parts > most * chip.compute_units
        if parts > 1 and (steps // parts < _LEAST_STEPS or is_many):
            return
        yield parts


def _tiles(tiling: Tiling, extents: tuple[int, int, int, int]) -> int:
    s, m, n, _ = extents
    return s * ceil(m / tiling.block[0]) * ceil(n / tiling.block[1])


def _with_more_waves(
    tiling: Tiling, gemm: GemmOnChip, steps: int, most: int
) -> Iterator[Tiling]:  # fmt: skip
    """The tiling with as many waves along K as it can have, if it can have several."""
    k_waves = most // tiling.wave_count
    if gemm.made:
        alone = gemm.m < gemm.intrinsic.m
        k_waves = min(k_waves, tiling.k_step // (_MADE_ALONE if alone else _MADE_STEP))
    while k_waves > 1:
        found = replace(tiling, k_waves=k_waves)
        if is_legal(found, gemm.intrinsic, gemm.chip, gemm.k_bytes, steps, gemm.loads):
            yield found
            return
        k_waves //= 2
