"""Which tilings are legal: what an instruction, a chip and K's length allow."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, prod

from mfmadsl.argument import check_flag, check_integer, check_list
from mfmadsl.model import OVERLAPS, Architecture, Intrinsic, Tiling
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.tiling.limits import check_lds, check_threads
from mfmadsl.schedule.matrix_core.tiling.resources import (
    CHUNK,
    KBytes,
    Loads,
    lane_bytes,
    lds_bytes,
    natural_k_pack,
    registers,
)

MOST_STAGES = 4
"""The most stages offered: today's LDS holds no more useful tiles."""


def check_instruction(intrinsic: Intrinsic) -> None:
    """Raise ScheduleError for an instruction that is no plain product, of one block or several."""
    if intrinsic.sparse:
        raise ScheduleError(
            f"{intrinsic.name} takes a sparse A: `sparse_matmul` gives its workload"
        )
    for operand in (intrinsic.a, intrinsic.b):
        bits = operand.layout.elements_per_lane * operand.type.bits
        if operand.type.bits < 8:
            raise ScheduleError(
                f"{intrinsic.name} takes {operand.type} with scales: `scaled_matmul` gives its"
                " workload"
            )
        if bits % 32:
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
    tiling: Tiling, intrinsic: Intrinsic, chip: Architecture, k_bytes: KBytes,
    steps: int | None, loads: Loads | None = None, least_stages: int = 1,
) -> None:  # fmt: skip
    """Raise ScheduleError, with the limit that it breaks, for a tiling that is not legal.

    `steps` is the number of steps that K has, if it is known; without `loads` they are the best
    that the chip has. Products that go past the LDS have `least_stages` of 0.
    """
    check_values(tiling, least_stages)
    check_fits(tiling, intrinsic, chip, k_bytes, steps, loads)


def check_fits(
    tiling: Tiling, intrinsic: Intrinsic, chip: Architecture, k_bytes: KBytes,
    steps: int | None, loads: Loads | None = None,
) -> None:  # fmt: skip
    """`check_tiling` of one whose values are known to be possible."""
    check_whole_tiles(tiling, intrinsic)
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
    row_bytes, least = (max(k_bytes) * k for k in (tiling.k_step, tiling.k_pack * intrinsic.k))
    register_steps = 2 if tiling.stages else 1
    if tiling.k_waves > 1:
        _check_k_waves(tiling, intrinsic, register_steps)
    if not tiling.stages and tiling.k_step % (tiling.k_pack * intrinsic.k):
        raise _illegal(
            f"k_step={tiling.k_step}: without stages {intrinsic.name} needs a multiple of"
            f" {tiling.k_pack * intrinsic.k}, a register step"
        )
    if tiling.stages and (row_bytes % (2 * least) or row_bytes < CHUNK):
        raise _illegal(
            f"k_step={tiling.k_step} is {row_bytes:.10g} bytes; {intrinsic.name} needs a multiple "
            f"of {2 * least:.10g}: two register steps, one to be read while the other is multiplied"
        )
    along_k = (tiling.k_waves,) if tiling.k_waves > 1 else ()
    check_threads("tiling", (*tiling.waves, *along_k), chip.wave_size, chip)
    tiles = "no tiles"
    if tiling.stages:
        tiles = f"tiles of {tiling.block[0]} and {tiling.block[1]} rows of {row_bytes:.10g} bytes"
    many = f"{intrinsic.blocks} times " if intrinsic.blocks > 1 else ""
    if tiling.stages > 2 and not chip.wide_loads_to_lds:
        raise _illegal(
            f"stages={tiling.stages}: {chip.name} has no loads straight into the LDS, which more"
            " than two are for"
        )
    twice = ("", "", "two times ", "three times ", "four times ")[tiling.stages]
    if tiling.k_waves > 1:
        tiles += f" and the sums of {tiling.k_waves} waves along K"
    size = lds_bytes(tiling, k_bytes, intrinsic)
    check_lds("tiling", twice + many + tiles, size, chip)
    loads = loads or Loads(chip.wide_loads_to_lds)
    check_registers(tiling, registers(tiling, intrinsic, k_bytes, loads), chip)
    check_parts(tiling, steps)


def is_legal(
    tiling: Tiling, intrinsic: Intrinsic, chip: Architecture, k_bytes: KBytes, steps: int,
    loads: Loads,
) -> bool:  # fmt: skip
    """Whether `check_fits` has nothing against a tiling."""
    try:
        check_fits(tiling, intrinsic, chip, k_bytes, steps, loads)
    except ScheduleError:
        return False
    return True


def check_whole_tiles(tiling: Tiling, intrinsic: Intrinsic) -> None:
    """Raise ScheduleError where a wave's tile is no number of tiles of the instruction."""
    for name, block, waves, rows in (
        ("M", tiling.block[0], tiling.waves[0], intrinsic.m),
        ("N", tiling.block[1], tiling.waves[1], intrinsic.n),
    ):
        if block % (waves * rows):
            raise _illegal(
                f"{block} of {name} for {waves} waves are no whole tiles of {intrinsic.name}: "
                f"a wave takes a multiple of {rows}"
            )


def check_registers(tiling: Tiling, needed: int, chip: Architecture) -> None:
    """Raise ScheduleError where a lane needs more registers than a workgroup leaves it."""
    budget = chip.registers // max(1, ceil(tiling.wave_count / chip.simds))
    if needed > budget:
        threads = tiling.wave_count * chip.wave_size
        raise _illegal(
            f"a wave's tile of {tiling.wave_tile[0]} x {tiling.wave_tile[1]} needs about {needed} "
            f"registers a lane, more than the {budget} that {threads} threads leave it on "
            f"{chip.name}"
        )


def check_parts(tiling: Tiling, steps: int | None) -> None:
    """Raise ScheduleError where K has not so many steps as parts, or None where it is a symbol."""
    if steps is None and tiling.split_k > 1:
        raise _illegal(f"split_k={tiling.split_k} needs K to be known")
    if steps is not None and tiling.split_k > steps:
        raise _illegal(f"split_k={tiling.split_k} is more than the {steps} steps that K has")
    if tiling.one_launch and tiling.split_k == 1:
        raise _illegal("one_launch: split_k=1 has no parts to add up: say split_k=2, or more, too")


def _check_k_waves(tiling: Tiling, intrinsic: Intrinsic, register_steps: int) -> None:
    """Raise ScheduleError where waves cannot share a step of K; each takes at least so many
    register steps."""
    said, least = f"k_waves={tiling.k_waves}", register_steps * tiling.k_pack * intrinsic.k
    steps = "two register steps" if register_steps == 2 else "a register step"
    if intrinsic.blocks > 1:
        raise _illegal(f"{said}: {intrinsic.name} multiplies {intrinsic.blocks} blocks at once")
    if tiling.k_step % (least * tiling.k_waves):
        raise _illegal(
            f"k_step={tiling.k_step} for {said}: each of the waves takes a multiple of {least}, "
            f"{steps} of {intrinsic.name}"
        )
    threads = tiling.wave_count * intrinsic.wave_size
    if prod(tiling.block) % threads:
        raise _illegal(
            f"{said} makes {threads} threads, which {tiling.block[0]} x {tiling.block[1]} sums "
            "are no whole number for each of"
        )


def check_values(tiling: Tiling, least_stages: int = 1) -> None:
    """Raise ScheduleError for values that are wrong whatever the instruction and the chip."""
    _check_types(tiling)
    if tiling.overlap not in OVERLAPS:
        raise _illegal(f"overlap: {tiling.overlap!r} is none of {', '.join(OVERLAPS)}")
    if not OVERLAPS[tiling.overlap].is_staged and tiling.stages != 1:
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
    if not least_stages <= tiling.stages <= MOST_STAGES:
        raise _illegal(f"stages: there are {least_stages} to {MOST_STAGES}, not {tiling.stages}")
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
    for name in ("swizzle", "persistent", "transposing_reads", "one_launch"):
        check_flag(f"tiling: {name}", getattr(tiling, name))
    for name in ("k_step", "k_pack", "stages", "split_k", "group", "k_waves"):
        check_integer(f"tiling: {name}", getattr(tiling, name))


def _illegal(what: str) -> ScheduleError:
    return ScheduleError(f"tiling: {what}")
