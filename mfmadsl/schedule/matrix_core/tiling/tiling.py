"""How a GEMM is cut: the values that one tunes, and the limits that they must keep to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, prod

from mfmadsl.argument import check_flag, check_integer, check_list
from mfmadsl.model import OVERLAPS, Architecture, Intrinsic, Operand
from mfmadsl.passes.main_loop.analysis.halves import LEAST
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.tiling.limits import check_lds, check_threads

CHUNK = 16
"""Bytes of the widest LDS access of a lane."""

MOST_STAGES = 4
"""Of tiles in the LDS; more is more than an LDS of today holds of any that are worth it."""

_WORD = 4
_SHIFTED_REGISTERS = 4  # of a chunk that is moved into place: a word more, its offset and shift
_OTHER_REGISTERS = 24  # for addresses, of each stage: what LLVM was seen to need beside the rest


@dataclass(frozen=True)
class Loads:
    """How A and B come from memory: `direct` if all of it may go straight into the LDS, `shifted`
    for each whether its rows start anywhere, so that words are to be moved into place, and `turned`
    for each whether rows are turned around on the way."""

    direct: bool = False
    shifted: tuple[bool, bool] = (False, False)
    turned: tuple[bool, bool] = (False, False)


@dataclass(frozen=True)
class Tiling:
    """Sizes of a GEMM kernel; M comes before N. Make others of one with `dataclasses.replace`.

    `block` is a workgroup's tile of C, shared by `waves`, and `k_step` the elements of K that it
    holds in the LDS at a time. `instruction` names the matrix instruction, and `k_pack` says how
    many of them one LDS read feeds. `swizzle` keeps the LDS free of bank conflicts. `stages` is how
    many tiles of each operand there are in the LDS: while one is multiplied, the others are on
    their way. `split_k` workgroups share a tile's K; `persistent` workgroups walk over the tiles,
    which follow each other in blocks of `group` rows. Of each step of K `k_waves` times as many
    waves take a part, and add up their sums in the LDS at the end.

    `overlap` says what comes while the matrix cores work: `nothing`; the next step's `loads` from
    memory; with those the next register step's `fragments` from the LDS; or `all` of it, spread
    among the matrix instructions. `transposing_reads` are those in which lanes exchange elements,
    where the chip has them.

    An instruction of several blocks multiplies as many matrices of a batch: `block`, `waves` and
    `k_step` are those of each of them.
    """

    block: tuple[int, int]
    k_step: int
    waves: tuple[int, int]
    instruction: str
    k_pack: int
    swizzle: bool = True
    stages: int = 1
    split_k: int = 1
    persistent: bool = False
    group: int = 8
    k_waves: int = 1
    overlap: str = "all"
    transposing_reads: bool = True

    @property
    def wave_count(self) -> int:
        """How many waves a workgroup has."""
        return self.waves[0] * self.waves[1] * self.k_waves

    @property
    def wave_tile(self) -> tuple[int, int]:
        """A wave's tile of C."""
        return self.block[0] // self.waves[0], self.block[1] // self.waves[1]

    def lds_bytes(self, element_bytes: int, intrinsic: Intrinsic) -> int:
        """What the tiles of A and B take at least, and the sums that waves share."""
        tiles = intrinsic.blocks * sum(self.block) * self.k_step * element_bytes * self.stages
        shared = self.k_waves if self.k_waves > 1 else 0
        return tiles + shared * prod(self.block) * intrinsic.c.type.bits // 8

    def _tiles(self, intrinsic: Intrinsic) -> tuple[int, int]:
        """Tiles of the instruction in a wave's tile."""
        rows, columns = self.wave_tile
        return ceil(rows / intrinsic.m), ceil(columns / intrinsic.n)

    def straight(self, loads: Loads) -> bool:
        """Whether loads go straight into the LDS."""
        return loads.direct and self.stages > 1

    def by_halves(self, intrinsic: Intrinsic, loads: Loads) -> bool:
        """Whether turns may take the sums by halves, such that loads have half a turn more."""
        tiles = self._tiles(intrinsic)
        return self.straight(loads) and tiles[0] % 2 == 0 and prod(tiles) >= 2 * LEAST

    def registers(self, intrinsic: Intrinsic, element_bytes: int, loads: Loads) -> int:
        """What a lane needs: accumulators, fragments of two register steps, and fetched data.

        What goes into the LDS directly is not fetched, and turns may take the sums by halves: that
        needs the fragments of two steps of half of A, and of all steps of B.
        """
        tiles = self._tiles(intrinsic)
        of_a, of_b = (
            count * ceil(self.k_pack * lane_bytes(operand) / _WORD)
            for count, operand in zip(tiles, (intrinsic.a, intrinsic.b), strict=True)
        )
        fragments = 2 * (of_a + of_b)
        row_bytes = self.k_step * element_bytes * intrinsic.blocks
        threads = self.wave_count * intrinsic.wave_size
        fetched = 0 if self.straight(loads) else ceil(sum(self.block) * row_bytes / threads / _WORD)
        shifted = sum(rows for rows, odd in zip(self.block, loads.shifted, strict=True) if odd)
        fetched += ceil(shifted * row_bytes / threads / CHUNK) * _SHIFTED_REGISTERS
        # What was turned around is swizzled by more bits of a row: reads have more addresses.
        turned = sum(2 * count for count, is_so in zip(tiles, loads.turned, strict=True) if is_so)
        sums = tiles[0] * tiles[1] * intrinsic.c.register_count
        others = _OTHER_REGISTERS * min(self.stages, 2)
        if self.by_halves(intrinsic, loads):
            steps = self.k_step // (self.k_pack * intrinsic.k)
            fragments = min(fragments, of_a + steps * of_b)
        return sums + fragments + fetched + turned + others


def lane_bytes(operand: Operand) -> int:
    """Bytes of an operand that a lane holds."""
    return operand.layout.elements_per_lane * operand.type.bits // 8


def natural_k_pack(intrinsic: Intrinsic) -> int:
    """The one that makes LDS reads as wide as they can be; of several blocks there is but 1."""
    if intrinsic.blocks > 1:
        return 1
    return max(1, CHUNK // max(lane_bytes(intrinsic.a), lane_bytes(intrinsic.b)))


def check_instruction(intrinsic: Intrinsic) -> None:
    """Raise ScheduleError for an instruction that is no plain product, of one block or several."""
    if intrinsic.sparse:
        raise ScheduleError(f"{intrinsic.name} is sparse: no GEMM is made of it")
    for operand in (intrinsic.a, intrinsic.b):
        bits = operand.layout.elements_per_lane * operand.type.bits
        if bits % 32 or operand.type.bits < 8:
            raise ScheduleError(
                f"{intrinsic.name}: no GEMM is made of {operand.type} in {bits} bits"
            )


def makes_gemm(intrinsic: Intrinsic) -> bool:
    """Whether a GEMM can be made of an instruction."""
    try:
        check_instruction(intrinsic)
    except ScheduleError:
        return False
    return True


def check_tiling(
    tiling: Tiling, intrinsic: Intrinsic, chip: Architecture, element_bytes: int,
    steps: int | None, loads: Loads | None = None,
) -> None:  # fmt: skip
    """Raise ScheduleError, with the limit that it breaks, for a tiling that is not legal.

    `steps` is the number of steps that K has, if it is known; without `loads` they are the best
    that the chip has.
    """
    check_values(tiling)
    for name, block, waves, rows in (
        ("M", tiling.block[0], tiling.waves[0], intrinsic.m),
        ("N", tiling.block[1], tiling.waves[1], intrinsic.n),
    ):
        if block % (waves * rows):
            raise _illegal(
                f"{block} of {name} for {waves} waves are no whole tiles of {intrinsic.name}: "
                f"a wave takes a multiple of {rows}"
            )
    widest = max(lane_bytes(intrinsic.a), lane_bytes(intrinsic.b))
    if intrinsic.blocks > 1 and tiling.k_pack > 1:
        raise _illegal(
            f"k_pack={tiling.k_pack}: {intrinsic.name} multiplies {intrinsic.blocks} blocks at"
            " once, of which only k_pack=1 can be"
        )
    if tiling.k_pack > natural_k_pack(intrinsic):
        raise _illegal(
            f"k_pack={tiling.k_pack} makes LDS reads of {tiling.k_pack * widest} bytes, but the "
            f"widest have {CHUNK}: at most {natural_k_pack(intrinsic)}"
        )
    row_bytes, least = tiling.k_step * element_bytes, tiling.k_pack * intrinsic.k * element_bytes
    if tiling.k_waves > 1:
        _check_k_waves(tiling, intrinsic, 2 * tiling.k_pack * intrinsic.k)
    if row_bytes % (2 * least) or row_bytes < CHUNK:
        raise _illegal(
            f"k_step={tiling.k_step} is {row_bytes} bytes; {intrinsic.name} needs a multiple of "
            f"{2 * least}: two register steps, one to be read while the other is multiplied"
        )
    along_k = (tiling.k_waves,) if tiling.k_waves > 1 else ()
    check_threads("tiling", (*tiling.waves, *along_k), chip.wave_size, chip)
    tiles = f"tiles of {tiling.block[0]} and {tiling.block[1]} rows of {row_bytes} bytes"
    many = f"{intrinsic.blocks} times " if intrinsic.blocks > 1 else ""
    if tiling.stages > 2 and not chip.wide_loads_to_lds:
        raise _illegal(
            f"stages={tiling.stages}: {chip.name} has no loads straight into the LDS, which more"
            " than two are for"
        )
    twice = ("", "", "two times ", "three times ", "four times ")[tiling.stages]
    if tiling.k_waves > 1:
        tiles += f" and the sums of {tiling.k_waves} waves along K"
    size = tiling.lds_bytes(element_bytes, intrinsic)
    check_lds("tiling", twice + many + tiles, size, chip)
    budget = chip.registers // max(1, ceil(tiling.wave_count / chip.simds))
    loads = loads or Loads(chip.wide_loads_to_lds)
    needed = tiling.registers(intrinsic, element_bytes, loads)
    if needed > budget:
        threads = tiling.wave_count * chip.wave_size
        raise _illegal(
            f"a wave's tile of {tiling.wave_tile[0]} x {tiling.wave_tile[1]} needs about {needed} "
            f"registers a lane, more than the {budget} that {threads} threads leave it on "
            f"{chip.name}"
        )
    if steps is None and tiling.split_k > 1:
        raise _illegal(f"split_k={tiling.split_k} needs K to be known")
    if steps is not None and tiling.split_k > steps:
        raise _illegal(f"split_k={tiling.split_k} is more than the {steps} steps that K has")


def _check_k_waves(tiling: Tiling, intrinsic: Intrinsic, least: int) -> None:
    """Raise ScheduleError where waves cannot share a step of K; each takes at least so much."""
    said = f"k_waves={tiling.k_waves}"
    if intrinsic.blocks > 1:
        raise _illegal(f"{said}: {intrinsic.name} multiplies {intrinsic.blocks} blocks at once")
    if tiling.k_step % (least * tiling.k_waves):
        raise _illegal(
            f"k_step={tiling.k_step} for {said}: each of the waves takes a multiple of {least}, "
            f"two register steps of {intrinsic.name}"
        )
    threads = tiling.wave_count * intrinsic.wave_size
    if prod(tiling.block) % threads:
        raise _illegal(
            f"{said} makes {threads} threads, which {tiling.block[0]} x {tiling.block[1]} sums "
            "are no whole number for each of"
        )


def check_values(tiling: Tiling) -> None:
    """Raise ScheduleError for values that are wrong whatever the instruction and the chip."""
    _check_types(tiling)
    if tiling.overlap not in OVERLAPS:
        raise _illegal(f"overlap: {tiling.overlap!r} is none of {', '.join(OVERLAPS)}")
    if tiling.overlap in OVERLAPS[:2] and tiling.stages != 1:
        raise _illegal(
            f"overlap={tiling.overlap} has one stage, not {tiling.stages}: say stages=1, too"
        )
    for size in tiling.block:
        if size < 1:
            raise _illegal(f"block: {size} is no positive number")
    numbers = {"waves": tiling.waves, "k_waves": (tiling.k_waves,)}
    numbers |= {"k_step": (tiling.k_step,), "k_pack": (tiling.k_pack,)}
    for name, values in numbers.items():
        for value in values:
            if value < 1 or value & (value - 1):
                raise _illegal(f"{name}: {value} is no power of two")
    if not 1 <= tiling.stages <= MOST_STAGES:
        raise _illegal(f"stages: there are 1 to {MOST_STAGES}, not {tiling.stages}")
    for name, value in (("split_k", tiling.split_k), ("group", tiling.group)):
        if value < 1:
            raise _illegal(f"{name}: {value} is no positive number")


def of_plain_numbers(tiling: Tiling) -> Tiling:
    """The tiling with Python's own integers, which are all that TVM takes."""
    (m, n), (along_m, along_n) = tiling.block, tiling.waves
    return replace(
        tiling, block=(int(m), int(n)), waves=(int(along_m), int(along_n)),
        k_step=int(tiling.k_step), k_pack=int(tiling.k_pack), stages=int(tiling.stages),
        split_k=int(tiling.split_k), group=int(tiling.group), k_waves=int(tiling.k_waves),
    )  # fmt: skip


def _check_types(tiling: Tiling) -> None:
    for name in ("block", "waves"):
        pair = getattr(tiling, name)
        check_list(f"tiling: {name}", pair, "a pair of numbers, M before N")
        if len(pair) != 2:
            raise _illegal(f"{name}: is a pair of numbers, M before N, not {len(pair)}")
        for value in pair:
            check_integer(f"tiling: {name}", value)
    for name in ("swizzle", "persistent", "transposing_reads"):
        check_flag(f"tiling: {name}", getattr(tiling, name))
    for name in ("k_step", "k_pack", "stages", "split_k", "group", "k_waves"):
        check_integer(f"tiling: {name}", getattr(tiling, name))


def _illegal(what: str) -> ScheduleError:
    return ScheduleError(f"tiling: {what}")
