"""Which tiling a product of scaled blocks takes: legal ones, and the fastest by the formula."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product as pairs
from math import ceil, prod
from types import NoneType

from tvm.tirx.analysis import undefined_vars

from mfmadsl.argument import check_type
from mfmadsl.language import find
from mfmadsl.model import Architecture, Intrinsic, Tiling, product_of, unscaled
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.instruction import of_one_instruction
from mfmadsl.schedule.matrix_core.selection import loads_of
from mfmadsl.schedule.matrix_core.store_columns import columns_of
from mfmadsl.schedule.matrix_core.tiling.choice import (
    candidates,
    parts_worth_a_look,
    throughput,
)
from mfmadsl.schedule.matrix_core.tiling.columns_together import ColumnsTogether, columns_together
from mfmadsl.schedule.matrix_core.tiling.cost import Estimate, estimate
from mfmadsl.schedule.matrix_core.tiling.fastest import fastest_first
from mfmadsl.schedule.matrix_core.tiling.gemm_on_chip import GemmOnChip
from mfmadsl.schedule.matrix_core.tiling.legal import (
    check_parts,
    check_registers,
    check_whole_tiles,
)
from mfmadsl.schedule.matrix_core.tiling.limits import check_lds, check_threads
from mfmadsl.schedule.matrix_core.tiling.reads import MemoryRead, k_bytes_of
from mfmadsl.schedule.matrix_core.tiling.resources import (
    Loads,
    is_direct,
    natural_k_pack,
)
from mfmadsl.schedule.product.block_scaled import BlockScaledProduct
from mfmadsl.schedule.product.column_groups import group_columns
from mfmadsl.schedule.product.memory import Memory
from mfmadsl.schedule.product.nest import loads

_SIDES = (256, 224, 192, 128, 64, 32, 16)
_WAVES = (8, 4, 2, 1)
_ENOUGH_WAVES = 4
_SMALL, _LONGEST_OF_LARGE = 16, 128  # rows of instructions, and of a wave with larger ones
_SCALE = 4  # bytes
_WORD = 4
_VECTOR_REGISTERS = 256  # vector instructions add to C, which they reach nowhere else
_OTHER_REGISTERS = 16  # of addresses and conditions: what LLVM was seen to need beside the rest


@dataclass(frozen=True)
class _Demand:
    """What of a product its tilings depend on."""

    extents: tuple[int, int, int, int]
    group: int
    reads: tuple[MemoryRead, ...]
    loads: Loads
    result: Memory
    together: ColumnsTogether


def _demand(product: BlockScaledProduct, chip: Architecture) -> _Demand:
    memories = product.memories
    reads = tuple(_reads(product, memories))
    loads = loads_of(memories, (1, 1), chip)
    in_turn = memories[1].axis == "k"  # where tiles take columns in turn
    together = columns_together(
        group_columns(product.function), product.extents[2], turned=not in_turn
    )
    return _Demand(product.extents, product.group, reads, loads, product.result, together)


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
    tiling, chosen = of_one_instruction(
        tiling, asked, lambda each: _instructions(product, each, chip)
    )
    demand = _demand(product, chip)
    _check(tiling, chosen, chip, demand)
    demand.together.check(tiling, chosen)
    return tiling


def block_scaled_tilings(
    product: BlockScaledProduct, asked: Intrinsic | str | None, chip: Architecture
) -> list[Tiling]:
    """The legal tilings that are worth a look, that which should be the fastest first."""
    estimated = estimator(product, chip)
    offered = offered_tilings(product, asked, chip)
    return fastest_first([(estimated(tiling), tiling) for tiling in offered])


def offered_tilings(
    product: BlockScaledProduct, asked: Intrinsic | str | None, chip: Architecture
) -> list[Tiling]:
    """The legal tilings that are worth a look. Raises ScheduleError if there are none."""
    instructions, demand = _instructions(product, asked, chip), _demand(product, chip)
    found = [tiling for each in instructions for tiling in _offered(demand, each, chip)]
    if not found:
        raise ScheduleError(f"no tiling for {instructions[0].name} fits {chip.name}")
    # The formula does not know what more waves hide.
    return [tiling for tiling in found if tiling.wave_count >= _ENOUGH_WAVES] or found


def estimator(product: BlockScaledProduct, chip: Architecture) -> Callable[[Tiling], Estimate]:
    """What tells how long a product should take with a tiling."""
    demand = _demand(product, chip)
    s, m, n, k = demand.extents

    def estimated(tiling: Tiling) -> Estimate:
        instruction = unscaled(find(tiling.instruction))
        stored = _stored_bytes(demand, instruction, tiling, chip)
        gemm = GemmOnChip(
            m, n, k, s, demand.reads, stored, instruction, chip, product_of(chip.name),
            demand.loads,
        )  # fmt: skip
        return estimate(gemm, tiling)

    return estimated


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
    found = [each for each in found if throughput(each, chip.name) == fastest]
    together = _demand(product, chip).together
    return [min([each for each in found if together.are_held_by(each)] or found, key=_size)]


def _size(intrinsic: Intrinsic) -> int:
    return intrinsic.m * intrinsic.n


def _offered(demand: _Demand, instruction: Intrinsic, chip: Architecture) -> Iterator[Tiling]:
    """Legal tilings, of which no side is twice as long as it has to be."""
    _, m, n, _ = demand.extents
    k_pack = min(natural_k_pack(instruction), demand.group // instruction.k)
    stages = (2, 1) if demand.loads.direct else (1,)
    for block_m, block_n, along_m, along_n, stage in pairs(_SIDES, _SIDES, _WAVES, _WAVES, stages):
        sides = ((block_m, m, instruction.m), (block_n, n, instruction.n))
        if any(block >= 2 * extent and block > least for block, extent, least in sides):
            continue
        if along_m * along_n > _WAVES[0]:
            continue
        tiling = Tiling(
            (block_m, block_n), demand.group, (along_m, along_n), instruction.name, k_pack,
            stages=stage,
        )  # fmt: skip
        try:
            _check(tiling, instruction, chip, demand)
        except ScheduleError:
            continue
        if instruction.m > _SMALL and max(tiling.wave_tile) > _LONGEST_OF_LARGE:
            continue  # LLVM was seen to spill registers
        if registers(tiling, instruction, demand.loads) <= _VECTOR_REGISTERS:
            for parts in parts_worth_a_look(tiling, demand.extents, chip):
                variant = replace(tiling, split_k=parts)
                if demand.together.are_kept_by(variant, instruction):
                    yield variant


def _check(tiling: Tiling, intrinsic: Intrinsic, chip: Architecture, demand: _Demand) -> None:
    """Raise ScheduleError, with the limit that it breaks, for a tiling that is not legal."""
    check_whole_tiles(tiling, intrinsic)
    group = demand.group
    if tiling.k_step != group:
        raise _illegal(f"k_step={tiling.k_step}: a step is of the {group} that share scales")
    if group % (tiling.k_pack * intrinsic.k) or tiling.k_pack > natural_k_pack(intrinsic):
        raise _illegal(
            f"k_pack={tiling.k_pack}: {group} of k are no whole steps of so many"
            f" {intrinsic.name}, or more than the {natural_k_pack(intrinsic)} of an LDS read"
        )
    if tiling.k_waves > 1:
        raise _illegal(f"k_waves={tiling.k_waves}: waves do not share the k of scaled blocks")
    check_parts(tiling, -(-demand.extents[3] // group))
    if tiling.persistent:
        raise _illegal("persistent: a workgroup takes one tile of scaled blocks")
    if tiling.stages > 2:
        raise _illegal(f"stages={tiling.stages}: products of scaled blocks have two at most")
    check_threads("tiling", tiling.waves, chip.wave_size, chip)
    size = _lds_bytes(tiling, demand)
    twice = "two times " if tiling.stages > 1 else ""
    check_lds("tiling", f"{twice}tiles of {tiling.block[0]} and {tiling.block[1]} rows", size, chip)
    check_registers(tiling, registers(tiling, intrinsic, demand.loads), chip)


def _lds_bytes(tiling: Tiling, demand: _Demand) -> int:
    """What the tiles and their scales take; the rows of one that is turned are a power of two."""
    sides = zip(tiling.block, k_bytes_of(demand.reads), demand.loads.turned, strict=True)
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


def _reads(product: BlockScaledProduct, memories: tuple[Memory, Memory]) -> Iterator[MemoryRead]:
    """What is read of A and B, and of their scales."""
    for side, memory in enumerate(memories):
        yield MemoryRead(side, 1, 1 if memory.axis in ("i", "j") else None)
        if product.scales[side] is not None:
            yield MemoryRead(side, _SCALE / product.group, _together(product, side))


def _stored_bytes(
    demand: _Demand, instruction: Intrinsic, tiling: Tiling, chip: Architecture
) -> int:
    """The bytes that the memory stores for an element of C: it takes whole lines."""
    result, width = demand.result, instruction.n
    size = result.size or _SCALE
    tiles = tiling.wave_tile[1] // width
    order = columns_of(result, demand.extents[2], tiles, width, chip.line_bytes)
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


def _illegal(what: str) -> ScheduleError:
    return ScheduleError(f"tiling: {what}")
