"""The matrix instruction of a product: the one that is asked for, or chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import NoneType

from mfmadsl.argument import check_type
from mfmadsl.language import find
from mfmadsl.model import Architecture, Intrinsic, Tiling, numbered_up, upright
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.tiling.choice import candidates, choose_instruction
from mfmadsl.schedule.matrix_core.tiling.legal import (
    check_instruction,
    check_values,
    of_plain_numbers,
)
from mfmadsl.schedule.product.memory import number
from mfmadsl.schedule.product.normalise import Product


def instruction_of(
    product: Product, intrinsic: Intrinsic | str | None, tiling: Tiling | None, chip: Architecture
) -> Intrinsic:
    """The instruction that is asked for or chosen, with its A and B as the product has them.

    Raises ScheduleError for one of which no GEMM is made, or not this one.
    """
    types = product.types[0], product.types[1]
    check_type("tiling", tiling, (Tiling, NoneType), "a Tiling")
    if tiling is not None:
        check_type("tiling.instruction", tiling.instruction, str, "an intrinsic's name")
        intrinsic = tiling.instruction if intrinsic is None else intrinsic
    if intrinsic is None:
        extents = [number(extent) for extent in product.extents[1:3]]
        rows = min((e for e in extents if e is not None), default=None)
        chosen = choose_instruction(*types, chip.name, rows)
    else:
        check_type("intrinsic", intrinsic, (Intrinsic, str), "an Intrinsic or its name")
        chosen = find(intrinsic) if isinstance(intrinsic, str) else intrinsic
        asked, chosen = chosen, _turned(chosen, types, chip)
        if tiling is not None and not any(
            each.is_called(tiling.instruction) for each in (asked, chosen)
        ):
            raise ScheduleError(
                f"intrinsic: is {asked.name}, but the tiling's is {tiling.instruction}"
            )
    check_instruction(chosen)
    if chosen.blocks > 1:
        _check_batches(product, chosen)
    if chosen.c.type.dtype != product.types[2]:
        raise ScheduleError(
            f"workload: the product sums in {product.types[2]}, {chosen.name} in "
            f"{chosen.c.type.dtype}"
        )
    return chosen


def _check_batches(product: Product, chosen: Intrinsic) -> None:
    several = f"{chosen.name} multiplies {chosen.blocks} blocks at once, each of another matrix"
    if product.extents[0] == 1:
        raise ScheduleError(f"{several} of a batch, but the workload has one product only")
    for name, batches in zip("AB", product.batches, strict=True):
        if batches == 1:
            raise ScheduleError(
                f"{several} of a batch, but the workload has one {name} for all of them: copy it "
                "for each"
            )


def _turned(intrinsic: Intrinsic, types: tuple[str, str], chip: Architecture) -> Intrinsic:
    """The instruction, or the one with A and B exchanged."""
    if chip.name not in intrinsic.chips:
        raise ScheduleError(
            f"{chip.name} has no {intrinsic.name}: it is an instruction of "
            f"{', '.join(intrinsic.chips)}"
        )
    own = intrinsic.a.type.dtype, intrinsic.b.type.dtype
    if own == types:
        return intrinsic
    if own == types[::-1]:
        for other in candidates(*types, chip.name):
            if (other.m, other.n, other.k) == (intrinsic.m, intrinsic.n, intrinsic.k):
                return other
    raise ScheduleError(
        f"{intrinsic.name} multiplies {own[0]} by {own[1]}, but the workload has "
        f"{types[0]} and {types[1]}"
    )


def of_one_instruction(
    tiling: Tiling, asked: Intrinsic | str | None,
    instructions: Callable[[Intrinsic | str], Sequence[Intrinsic]],
) -> tuple[Tiling, Intrinsic]:  # fmt: skip
    """The tiling in plain numbers, and the instruction that is asked for, or else its own, of those
    that the product has.

    Raises ScheduleError for values that are wrong whatever the product, and for two instructions.
    """
    check_type("tiling.instruction", tiling.instruction, str, "an intrinsic's name")
    check_values(tiling)
    (chosen,) = instructions(tiling.instruction if asked is None else asked)
    if chosen.name != find(tiling.instruction).name:
        raise ScheduleError(
            f"intrinsic: is {chosen.name}, but the tiling's is {tiling.instruction}"
        )
    return of_plain_numbers(tiling), chosen


def counting_up(intrinsic: Intrinsic) -> Intrinsic:
    """The instruction with rows and columns named such that loops can be bound to C's lanes."""
    found = upright(intrinsic)
    if numbered_up(found.c.layout) is not found.c.layout:
        raise ScheduleError(
            f"{intrinsic.name}: lanes or registers of `c` count down, whatever rows and columns are"
            " called: no GEMM is made of it"
        )
    return found
