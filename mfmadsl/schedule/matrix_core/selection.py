"""Which instruction a product gets, and which tiling: those asked for, tuned, or estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from tvm.tirx import Expr

from mfmadsl.model import Architecture, Intrinsic, Tiling
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.instruction import instruction_of
from mfmadsl.schedule.matrix_core.stage import reads_turned
from mfmadsl.schedule.matrix_core.tiling.cases import BORDERS, MAY_BE_CASE, Case, cases_of
from mfmadsl.schedule.matrix_core.tiling.choice import (
    ProductShape,
    default_tiling,
    equally_fast,
    estimated,
    gemm_on,
)
from mfmadsl.schedule.matrix_core.tiling.columns_together import ColumnsTogether, columns_together
from mfmadsl.schedule.matrix_core.tiling.cost import Estimate, estimate
from mfmadsl.schedule.matrix_core.tiling.gemm_on_chip import GemmOnChip
from mfmadsl.schedule.matrix_core.tiling.legal import check_tiling, check_values, of_plain_numbers
from mfmadsl.schedule.matrix_core.tiling.past_lds import check_past_lds
from mfmadsl.schedule.matrix_core.tiling.reads import MemoryRead
from mfmadsl.schedule.matrix_core.tiling.resources import CHUNK, KBytes, Loads
from mfmadsl.schedule.matrix_core.tiling.tuned import key_of, tuned_tilings
from mfmadsl.schedule.product.last_workgroup import NEEDS_ALL_OF_C
from mfmadsl.schedule.product.memory import Memory, number
from mfmadsl.schedule.product.normalise import Product


def selected(
    product: Product, asked: Intrinsic | str | None, tiling: Tiling | None, chip: Architecture
) -> tuple[Intrinsic, Tiling]:
    """The instruction and the tiling that are asked for, or else tuned, or else estimated.

    Raises ScheduleError for those that cannot be.
    """
    if tiling is not None:
        intrinsic = instruction_of(product, asked, tiling, chip)
        check_values(tiling, least_stages=0)
        tiling = of_plain_numbers(tiling)
        _check(product, intrinsic, tiling, chip)
        return intrinsic, tiling
    alike = _alike(product, asked, chip)
    found = _tuned(product, alike, chip) or default_tiling(
        _shape(product, alike, chip), alike, chip
    )
    return next(each for each in alike if each.name == found.instruction), found


def tuned(product: Product, asked: Intrinsic | str | None, chip: Architecture) -> Tiling | None:
    """The tiling that was tuned for such a product, if it is legal for this one."""
    return _tuned(product, _alike(product, asked, chip), chip)


def ranked(product: Product, asked: Intrinsic | str | None, chip: Architecture) -> list[Tiling]:
    """The legal tilings that are worth a look, that which should be the fastest first."""
    alike = _alike(product, asked, chip)
    found = estimated(_shape(product, alike, chip), alike, chip)
    return [tiling for _, tiling in sorted(found, key=lambda pair: pair[0].seconds)]


def cases(product: Product, asked: Intrinsic | str | None, chip: Architecture) -> list[Case]:
    """The tilings of a product and the extents that each is for; one for all where M, N and K are
    known, or several of them are not."""
    places = _symbolic(product)
    if not places:
        return [Case(selected(product, asked, None, chip)[1])]

    @cache
    def known(extent: int) -> tuple[dict[str, Intrinsic], ProductShape]:
        alike = _alike(_at(product, places, extent), asked, chip)
        shape = _shape(_at(product, places, extent), alike, chip)
        return {each.name: each for each in alike}, shape

    instructions: dict[str, Intrinsic] = {}

    @cache
    def on_chip(extent: int, instruction: str) -> GemmOnChip:
        return gemm_on(known(extent)[1], instructions[instruction], chip)

    def estimates(extent: int) -> list[tuple[Estimate, Tiling]]:
        named, shape = known(extent)
        # A kernel that splits K knows it.
        whole = number(product.extents[3]) is None
        found = estimated(shape, list(named.values()), chip, MAY_BE_CASE)
        return [each for each in found if not whole or each[1].split_k == 1]

    def of_one(extent: int, tiling: Tiling) -> Estimate:
        if tiling.instruction not in instructions:
            instructions[tiling.instruction] = instruction_of(product, asked, tiling, chip)
        return estimate(on_chip(extent, tiling.instruction), tiling)

    measured: dict[int, Tiling] = {}
    for extent in BORDERS if places == [1] else ():  # what is measured for an M serves its bucket
        alike = list(known(extent)[0].values())
        if found := _tuned(_at(product, places, extent), alike, chip):
            measured[extent] = found
    return cases_of(estimates, of_one, measured)


def _symbolic(product: Product) -> list[int]:
    """Where among the extents the one stands that is no number, if there is one."""
    places = [n for n, extent in enumerate(product.extents) if n and number(extent) is None]
    several = {str(product.extents[n]) for n in places}
    return places if len(several) == 1 else []


def symbolic_extent(product: Product) -> Expr | None:
    """The extent of M, N or K that alone is known at the launch only."""
    places = _symbolic(product)
    found = product.extents[places[0]] if places else None
    return None if isinstance(found, int) else found


def _at(product: Product, places: Sequence[int], extent: int) -> Product:
    """The product as it is with that extent."""
    known = (extent if n in places else each for n, each in enumerate(product.extents))
    s, m, n, k = known
    return replace(product, extents=(s, m, n, k))


def _alike(product: Product, asked: Intrinsic | str | None, chip: Architecture) -> list[Intrinsic]:
    """The instruction that is asked for, or those that are as fast as the one to be chosen."""
    intrinsic = instruction_of(product, asked, None, chip)
    return [intrinsic, *(equally_fast(intrinsic, chip.name) if asked is None else ())]


def _shape(product: Product, alike: Sequence[Intrinsic], chip: Architecture) -> ProductShape:
    s, m, n, k = (number(extent) for extent in product.extents)
    reads = tuple(_read(product, side, chip) for side in (0, 1))
    loads = loads_of(product.memory[:2], product.element_bytes[:2], chip, alike[0].blocks)
    together = _together(product, chip)
    return ProductShape(
        m, n, k, s, reads, product.element_bytes[2], loads, together, product.statistics_rows,
        product.ends_plainly, past_lds=True,
    )  # fmt: skip


def _together(product: Product, chip: Architecture) -> ColumnsTogether:
    """The columns that a wave has to store together."""
    memory, size = product.memory[1], product.element_bytes[1]
    turned = memory.axis == "j" and memory.packed_along("k") == 1 and reads_turned(chip, size)
    return columns_together(product.columns_together, product.extents[2], turned)


def _read(product: Product, side: int, chip: Architecture) -> MemoryRead:
    together = 1 if product.memory[side].axis == "ij"[side] else None
    prologue = product.prologues[side]
    stored, work = ((), 0.0) if prologue is None else (prologue.stored, prologue.work_on(chip))
    distance, size = product.memory[side].distance, product.element_bytes[side]
    alignment = distance * size if isinstance(distance, int) and distance else None
    return MemoryRead(side, _k_bytes(product)[side], together, stored, work, alignment)


def _tuned(product: Product, alike: Sequence[Intrinsic], chip: Architecture) -> Tiling | None:
    key = key_of(product, chip)
    for tiling in tuned_tilings(key) if key is not None else ():
        named = [each for each in alike if each.name == tiling.instruction]
        if named and _is_legal(product, named[0], tiling, chip):
            return tiling
    return None


def _is_legal(product: Product, intrinsic: Intrinsic, tiling: Tiling, chip: Architecture) -> bool:
    try:
        _check(product, intrinsic, tiling, chip)
    except ScheduleError:
        return False
    return True


def _check(product: Product, intrinsic: Intrinsic, tiling: Tiling, chip: Architecture) -> None:
    """Raise ScheduleError for a tiling that is not legal for the product."""
    k = number(product.extents[3])
    steps = None if k is None else -(-k // tiling.k_step)
    check_tiling(tiling, intrinsic, chip, _k_bytes(product), steps, least_stages=0)
    check_past_lds(tiling, intrinsic, k, product.statistics_rows)
    if tiling.one_launch and not product.ends_plainly:
        raise ScheduleError(NEEDS_ALL_OF_C)
    _together(product, chip).check(tiling, intrinsic)


def _k_bytes(product: Product) -> KBytes:
    """The bytes of an element of A and B, for both those of the wider one."""
    widest = max(product.element_bytes[:2])
    return widest, widest


def loads_of(
    memories: Sequence[Memory], sizes: Sequence[int], chip: Architecture, blocks: int = 1
) -> Loads:
    """How A and B, with elements of so many bytes, come from memory, as far as strides tell."""
    shifted, turned, direct, scattered = [], [], chip.wide_loads_to_lds, False
    for memory, size in zip(memories, sizes, strict=True):
        distance = memory.distance
        odd = not isinstance(distance, int) or distance * size % 4 != 0
        odd = odd and not memory.packed  # whole words
        shifted.append(odd and memory.axis is not None and size < 4)
        along_rows = memory.axis in ("i", "j")
        if memory.axis == "k" and isinstance(distance, int):
            scattered = scattered or distance * size % chip.line_bytes != 0
        whole = isinstance(distance, int) and distance * size % CHUNK == 0 and blocks == 1
        direct = direct and memory.axis is not None and not shifted[-1] and not memory.computed
        direct = direct and (not along_rows or (whole and reads_turned(chip, size)))
        by_reads = reads_turned(chip, size) and blocks == 1
        turned.append(along_rows and memory.packed_along("k") == 1 and not by_reads)
    return Loads(direct, (shifted[0], shifted[1]), (turned[0], turned[1]), scattered)
