"""Which tiling a product of scaled blocks takes: legal ones, and the fastest by the formula."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product as pairs
from math import ceil, prod
from types import NoneType

from tvm.tirx.analysis import undefined_vars

from mfmadsl.argument import check_type
from mfmadsl.language import find
from mfmadsl.model import Architecture, Intrinsic, Tiling, product_of
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.selection import loads_of
from mfmadsl.schedule.matrix_core.store_columns import columns_of
from mfmadsl.schedule.matrix_core.tiling.choice import (
    candidates,
    fastest_of,
    parts_worth_a_look,
    throughput,
)
from mfmadsl.schedule.matrix_core.tiling.cost import Estimate, GemmOnChip, estimate
from mfmadsl.schedule.matrix_core.tiling.legal import check_values, of_plain_numbers
from mfmadsl.schedule.matrix_core.tiling.limits import check_lds, check_threads
from mfmadsl.schedule.matrix_core.tiling.reads import Read, k_bytes_of
from mfmadsl.schedule.matrix_core.tiling.resources import (
    Loads,
    is_direct,
    natural_k_pack,
)
from mfmadsl.schedule.product.block_scaled import BlockScaledProduct
from mfmadsl.schedule.product.nest import loads

_SIDES = (256, 224, 192, 128, 64, 32, 16)
_WAVES = (8, 4, 2, 1)
_ENOUGH_WAVES = 4
_SMALL, _LONGEST_OF_LARGE = 16, 128  # rows of instructions, and of a wave with larger ones
_SCALE = 4  # bytes
_WORD = 4
_VECTOR_REGISTERS = 256  # vector instructions add to C, which they reach nowhere else
_OTHER_REGISTERS = 16  # of addresses and conditions: what LLVM was seen to need beside the rest


def block_scaled_tiling(
    product: BlockScaledProduct, asked: Intrinsic | str | None, tiling: Tiling | None,
    chip: Architecture,
) -> Tiling:  # fmt: skip
    """The tiling that is asked for, or that which should be the fastest by the formula.

    Raises ScheduleError for one that cannot be.
    """
    check_type("tiling", tiling, (Tiling, NoneType), "a Tiling")
    if tiling is None:
        return block_scaled_tilings(product, asked, chip)[0]
    check_type("tiling.instruction", tiling.instruction, str, "an intrinsic's name")
    check_values(tiling)
    tiling = of_plain_numbers(tiling)
    (chosen,) = _instructions(product, tiling.instruction if asked is None else asked, chip)
    if chosen.name != find(tiling.instruction).name:
        raise ScheduleError(
            f"intrinsic: is {chosen.name}, but the tiling's is {tiling.instruction}"
        )
    _check(tiling, chosen, chip, product)
    return tiling


def block_scaled_tilings(
    product: BlockScaledProduct, asked: Intrinsic | str | None, chip: Architecture
) -> list[Tiling]:
    """The legal tilings that are worth a look, that which should be the fastest first."""
    instructions = _instructions(product, asked, chip)
    s, m, n, k = product.extents
    found: list[tuple[Estimate, Tiling]] = []
    for instruction in instructions:
        gemm = GemmOnChip(
            m, n, k, s, tuple(_reads(product)), product.result.size or _SCALE, instruction, chip,
            product_of(chip.name), _loads(product, chip),
        )  # fmt: skip
        for tiling in _offered(product, instruction, chip):
            stored = _stored_bytes(product, instruction, tiling, chip)
            found.append((estimate(replace(gemm, result_bytes=stored), tiling), tiling))
    if not found:
        raise ScheduleError(f"no tiling for {instructions[0].name} fits {chip.name}")
    # The formula does not know what more waves hide.
    found = [pair for pair in found if pair[1].wave_count >= _ENOUGH_WAVES] or found
    best = fastest_of(found)
    others = sorted((pair for pair in found if pair[1] is not best), key=lambda p: p[0].seconds)
    return [best, *(tiling for _, tiling in others)]


def _instructions(
    product: BlockScaledProduct, asked: Intrinsic | str | None, chip: Architecture
) -> list[Intrinsic]:
    """The fastest instructions that take no more k than a group has, or the one asked for.

    Of those that are as fast only the one with the smallest tile: the sums of a row of larger ones
    would take too many registers.
    """
    every = candidates(*product.types, chip.name)
    found = [each for each in every if each.k <= product.group]
    spoken = " and ".join(dict.fromkeys(product.types))
    if asked is not None:
        check_type("intrinsic", asked, (Intrinsic, str), "an Intrinsic or its name")
        chosen = find(asked) if isinstance(asked, str) else asked
        if chosen not in found:
            raise ScheduleError(
                f"{chosen.name} does not multiply {spoken} with scales of {product.group} on"
                f" {chip.name}: {' and '.join(each.name for each in found)} do"
            )
        return [chosen]
    if not found:
        raise ScheduleError(
            f"{chip.name} has no matrix instruction for {spoken} that takes {product.group} of k"
        )
    fastest = max(throughput(each, chip.name) for each in found)
    return [min((each for each in found if throughput(each, chip.name) == fastest), key=_size)]


def _size(intrinsic: Intrinsic) -> int:
    return intrinsic.m * intrinsic.n


def _offered(
    product: BlockScaledProduct, instruction: Intrinsic, chip: Architecture
) -> Iterator[Tiling]:
    """Legal tilings, of which no side is twice as long as it has to be."""
    _, m, n, _ = product.extents
    k_pack = min(natural_k_pack(instruction), product.group // instruction.k)
    stages = (2, 1) if _loads(product, chip).direct else (1,)
    for block_m, block_n, along_m, along_n, stage in pairs(_SIDES, _SIDES, _WAVES, _WAVES, stages):
        sides = ((block_m, m, instruction.m), (block_n, n, instruction.n))
        if any(block >= 2 * extent and block > least for block, extent, least in sides):
            continue
        if along_m * along_n > _WAVES[0]:
            continue
        tiling = Tiling(
            (block_m, block_n), product.group, (along_m, along_n), instruction.name, k_pack,
            stages=stage,
        )  # fmt: skip
        try:
            _check(tiling, instruction, chip, product)
        except ScheduleError:
            continue
        if instruction.m > _SMALL and max(tiling.wave_tile) > _LONGEST_OF_LARGE:
            continue  # LLVM was seen to spill registers
        if registers(tiling, instruction, _loads(product, chip)) <= _VECTOR_REGISTERS:
            for parts in parts_worth_a_look(tiling, product.extents, chip):
                yield replace(tiling, split_k=parts)


def _check(
    tiling: Tiling, intrinsic: Intrinsic, chip: Architecture, product: BlockScaledProduct
) -> None:
    """Raise ScheduleError, with the limit that it breaks, for a tiling that is not legal."""
    for name, block, waves, rows in (
        ("M", tiling.block[0], tiling.waves[0], intrinsic.m),
        ("N", tiling.block[1], tiling.waves[1], intrinsic.n),
    ):
        if block % (waves * rows):
            raise _illegal(
                f"{block} of {name} for {waves} waves are no whole tiles of {intrinsic.name}: "
                f"a wave takes a multiple of {rows}"
            )
    if tiling.k_step != product.group:
        raise _illegal(
            f"k_step={tiling.k_step}: a step is of the {product.group} that share scales"
        )
    if product.group % (tiling.k_pack * intrinsic.k) or tiling.k_pack > natural_k_pack(intrinsic):
        raise _illegal(
            f"k_pack={tiling.k_pack}: {product.group} of k are no whole steps of so many"
            f" {intrinsic.name}, or more than the {natural_k_pack(intrinsic)} of an LDS read"
        )
    if tiling.k_waves > 1:
        raise _illegal(f"k_waves={tiling.k_waves}: waves do not share the k of scaled blocks")
    steps = -(-product.extents[3] // product.group)
    if tiling.split_k > steps:
        raise _illegal(f"split_k={tiling.split_k} is more than the {steps} steps that K has")
    if tiling.persistent:
        raise _illegal("persistent: a workgroup takes one tile of scaled blocks")
    if tiling.stages > 2:
        raise _illegal(f"stages={tiling.stages}: products of scaled blocks have two at most")
    check_threads("tiling", tiling.waves, chip.wave_size, chip)
    size = _lds_bytes(tiling, product, chip)
    twice = "two times " if tiling.stages > 1 else ""
    check_lds("tiling", f"{twice}tiles of {tiling.block[0]} and {tiling.block[1]} rows", size, chip)
    needed = registers(tiling, intrinsic, _loads(product, chip))
    budget = chip.registers // max(1, ceil(tiling.wave_count / chip.simds))
    if needed > budget:
        raise _illegal(
            f"a wave's tile of {tiling.wave_tile[0]} x {tiling.wave_tile[1]} needs about {needed}"
            f" registers a lane, more than the {budget} that"
            f" {tiling.wave_count * chip.wave_size} threads leave it on {chip.name}"
        )


def _lds_bytes(tiling: Tiling, product: BlockScaledProduct, chip: Architecture) -> int:
    """What the tiles and their scales take; the rows of one that is turned are a power of two."""
    k_bytes = k_bytes_of(tuple(_reads(product)))
    sides = zip(tiling.block, k_bytes, _loads(product, chip).turned, strict=True)
    of_k = sum(
        (1 << (rows - 1).bit_length() if turned else rows) * each for rows, each, turned in sides
    )
    return ceil(tiling.stages * tiling.k_step * of_k)


def registers(tiling: Tiling, intrinsic: Intrinsic, loads: Loads) -> int:
    """What a lane needs: C, the fragments of the shorter side of a wave's tile and of two tiles
    of the longer one, the sums of two rows of tiles with the scales of one, and fetched data."""
    rows, columns = tiling.wave_tile
    tiles = rows // intrinsic.m, columns // intrinsic.n
    own = intrinsic.c.register_count
    of_tile = [
        side * tiling.k_step // intrinsic.wave_size // _WORD for side in (intrinsic.m, intrinsic.n)
    ]
    held = 0 if rows <= columns else 1
    fragments = tiles[held] * of_tile[held] + 2 * of_tile[1 - held]
    threads = tiling.wave_count * intrinsic.wave_size
    fetched = (
        0 if is_direct(tiling, loads) else ceil(sum(tiling.block) * tiling.k_step / threads / _WORD)
    )
    return prod(tiles) * own + fragments + 3 * tiles[held] * own + fetched + _OTHER_REGISTERS


def _reads(product: BlockScaledProduct) -> Iterator[Read]:
    """What is read of A and B, and of their scales."""
    for side, memory in enumerate(product.memories):
        yield Read(side, 1, 1 if memory.axis in ("i", "j") else None)
        if product.scales[side] is not None:
            yield Read(side, _SCALE / product.group, _together(product, side))


def _stored_bytes(
    product: BlockScaledProduct, instruction: Intrinsic, tiling: Tiling, chip: Architecture
) -> int:
    """The bytes that the memory stores for an element of C: it takes whole lines."""
    result, width = product.result, instruction.n
    size = result.size or _SCALE
    tiles = tiling.wave_tile[1] // width
    order = columns_of(result, product.extents[2], tiles, width, chip.line_bytes)
    return size * max(1, chip.line_bytes // (width * order.count * size))


def _together(product: BlockScaledProduct, side: int) -> float | None:
    """The k of which the scales lie together before those of the next row; None if all do."""
    scale, row = product.scales[side], product.axes[-3 + side].var
    assert scale is not None
    for load in loads(scale):
        by_rows = any(index.same_as(row) for index in load.indices[:-1])
        if by_rows and product.which in undefined_vars(load.indices[-1]):
            return None
    return product.group


def _loads(product: BlockScaledProduct, chip: Architecture) -> Loads:
    return loads_of(product.memories, (1, 1), chip)


def _illegal(what: str) -> ScheduleError:
    return ScheduleError(f"tiling: {what}")
