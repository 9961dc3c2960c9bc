"""Which tilings a grouped product gets, of a number of rows or of a symbol that stands for one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

import tvm

from mfmadsl.argument import check_type
from mfmadsl.language import find
from mfmadsl.model import Architecture, Intrinsic, Tiling
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.cases import checked
from mfmadsl.schedule.matrix_core.group_order import row_by_row
from mfmadsl.schedule.matrix_core.instruction import of_one_instruction
from mfmadsl.schedule.matrix_core.selection import loads_of
from mfmadsl.schedule.matrix_core.stage import reads_turned
from mfmadsl.schedule.matrix_core.tiling.cases import Case, cases_of
from mfmadsl.schedule.matrix_core.tiling.choice import (
    ProductShape,
    candidates,
    choose_instruction,
    equally_fast,
    estimated,
    gemm_on,
)
from mfmadsl.schedule.matrix_core.tiling.columns_together import ColumnsTogether, columns_together
from mfmadsl.schedule.matrix_core.tiling.cost import Estimate, estimate
from mfmadsl.schedule.matrix_core.tiling.gemm_on_chip import GemmOnChip
from mfmadsl.schedule.matrix_core.tiling.legal import check_instruction, check_tiling
from mfmadsl.schedule.matrix_core.tiling.reads import MemoryRead
from mfmadsl.schedule.product.column_groups import group_columns
from mfmadsl.schedule.product.grouped import GroupedProduct

_MOST_SUMS = 128 * 256
"""Of a tile whose B is computed on its way, which takes registers that larger ones have not."""

_UNKNOWN_ROWS = 256  # what a number of rows that is a symbol is taken for


def grouped_cases(
    product: GroupedProduct, intrinsic: Intrinsic | str | None,
    tiling: Tiling | Sequence[Case] | None, chip: Architecture,
) -> list[Case]:  # fmt: skip
    """The tilings that are asked for, or chosen, and up to which numbers of rows each is: one where
    that is known.

    Raises ScheduleError for tilings that cannot be, and ArgumentError as `checked` does.
    """
    if tiling is not None:
        asked = checked(tiling)
        if len(asked) > 1 and isinstance(product.rows, int):
            raise ScheduleError(
                f"tiling: {len(asked)} cases are for rows that are a symbol: of {product.rows} rows"
                " give one Tiling"
            )
        return [
            replace(each, tiling=_checked(product, intrinsic, each.tiling, chip)) for each in asked
        ]
    choice = _choice(product, intrinsic, chip)
    if isinstance(product.rows, int):
        return [Case(choice.ranked(product.rows)[0][1])]
    return cases_of(choice.ranked, choice.estimate, {})


def grouped_tilings(
    product: GroupedProduct, intrinsic: Intrinsic | str | None, chip: Architecture
) -> list[Tiling]:
    """The legal tilings that are worth a look, that which should be the fastest first."""
    rows = product.rows if isinstance(product.rows, int) else _UNKNOWN_ROWS
    return [tiling for _, tiling in _choice(product, intrinsic, chip).ranked(rows)]


def _checked(
    product: GroupedProduct, intrinsic: Intrinsic | str | None, tiling: Tiling, chip: Architecture
) -> Tiling:
    """The tiling that is asked for. Raises ScheduleError for one that cannot be."""
    tiling, chosen = of_one_instruction(
        tiling, intrinsic, lambda asked: _instructions(product, asked, chip)
    )
    if tiling.split_k > 1 or tiling.k_waves > 1 or tiling.persistent:
        raise ScheduleError(
            f"tiling: split_k={tiling.split_k}, k_waves={tiling.k_waves},"
            f" persistent={tiling.persistent}: a product of groups, such as experts, takes 1, 1 and"
            " False, as its workgroups find their rows by themselves"
        )
    widest = max(sizes_of(product))
    check_tiling(tiling, chosen, chip, (widest, widest), -(-product.extents[2] // tiling.k_step))
    _together(product, chip).check(tiling, chosen)
    return tiling


def _together(product: GroupedProduct, chip: Architecture) -> ColumnsTogether:
    """The columns that a wave has to store together."""
    turned = product.memories[1].axis == "j" and reads_turned(chip, sizes_of(product)[1])
    return columns_together(group_columns(product.function), product.extents[1], turned)


def sizes_of(product: GroupedProduct) -> tuple[int, int]:
    """The bytes of an element of A and of B."""
    a, b, _ = product.types
    return int(tvm.DataType(a).bits) // 8, int(tvm.DataType(b).bits) // 8


def shapes_of_groups(groups: int, m: int) -> tuple[tuple[int, int], ...]:
    """(rows, how many groups have so many) by which tilings are chosen: of groups that have as many
    each, then of one that has half of all rows, and of the others beside it."""
    others = groups - 1
    return (-(-m // groups), groups), (max(1, m // 2), 1), (max(1, m // 2 // others), others)


@dataclass(frozen=True)
class _Choice:
    """What the time of a tiling depends on, beside the number of rows."""

    product: GroupedProduct
    intrinsics: tuple[Intrinsic, ...]
    chip: Architecture
    known: dict[tuple[int, str], list[GemmOnChip]] = field(default_factory=dict)

    def shapes(self, rows: int) -> tuple[ProductShape, ...]:
        """The products by which tilings are chosen."""
        groups, n, k = self.product.extents
        sizes, prologue = sizes_of(self.product), self.product.prologue
        widest = max(sizes)
        reads = tuple(
            MemoryRead(side, widest, None) if each is None
            else MemoryRead(side, widest, None, each.stored, each.work_on(self.chip))
            for side, each in enumerate((None, prologue))
        )  # fmt: skip
        loads = loads_of(self.product.memories, sizes, self.chip)
        return tuple(
            ProductShape(each, n, k, count, reads, 4, loads)
            for each, count in shapes_of_groups(groups, rows)
        )

    def on_chip(self, rows: int, instruction: str) -> list[GemmOnChip]:
        """These products by an instruction."""
        if (rows, instruction) not in self.known:
            own = next(each for each in self.intrinsics if each.name == instruction)
            found = [gemm_on(each, own, self.chip) for each in self.shapes(rows)]
            self.known[rows, instruction] = found
        return self.known[rows, instruction]

    def estimate(self, rows: int, tiling: Tiling) -> Estimate:
        """Of rows that are even, and of a group that has half of them."""
        found = [estimate(each, tiling) for each in self.on_chip(rows, tiling.instruction)]
        return Estimate(
            sum(each.unlimited for each in found),
            sum(each.read for each in found),
            lambda: sum(each.seconds for each in found),
        )

    def ranked(self, rows: int) -> list[tuple[Estimate, Tiling]]:
        """The legal tilings that are worth a look, that which should be the fastest first."""
        together = _together(self.product, self.chip)
        named = {each.name: each for each in self.intrinsics}
        even, _, others = self.shapes(rows)
        made = self.product.prologue is not None
        plain = (
            together.kept(replace(tiling, persistent=False), named[tiling.instruction])
            for shape in (even, others)
            for _, tiling in estimated(shape, self.intrinsics, self.chip)
            if tiling.split_k == 1 and tiling.k_waves == 1
            if not made or prod(tiling.block) <= _MOST_SUMS
        )
        n = self.product.extents[1]
        found = {row_by_row(each, n, self.chip): None for each in plain if each is not None}
        if not found:
            name = self.intrinsics[0].name
            raise ScheduleError(f"no tiling for {name} fits {self.chip.name}")
        estimates = [(self.estimate(rows, each), each) for each in found]
        return sorted(estimates, key=lambda pair: pair[0].seconds)


def _choice(
    product: GroupedProduct, intrinsic: Intrinsic | str | None, chip: Architecture
) -> _Choice:
    together = _together(product, chip)
    found = _instructions(product, intrinsic, chip)
    return _Choice(product, tuple(filter(together.are_held_by, found)) or tuple(found), chip)


def _instructions(
    product: GroupedProduct, asked: Intrinsic | str | None, chip: Architecture
) -> Sequence[Intrinsic]:
    """The instructions of the chip for the product's types: the fastest, or the one asked for."""
    a, b, sums = product.types
    if asked is None:
        chosen = choose_instruction(a, b, chip.name, None)
        found = [chosen, *equally_fast(chosen, chip.name)]
    else:
        check_type("intrinsic", asked, (Intrinsic, str), "an Intrinsic or its name")
        chosen = find(asked) if isinstance(asked, str) else asked
        found = [each for each in candidates(a, b, chip.name) if each.is_called(chosen.name)]
        if chosen.blocks > 1:
            raise ScheduleError(
                f"{chosen.name} multiplies {chosen.blocks} blocks: a product of groups takes an "
                "instruction of one"
            )
        if not found:
            others = ", ".join(each.name for each in candidates(a, b, chip.name)) or "none"
            raise ScheduleError(
                f"{chosen.name} does not multiply {a} by {b} on {chip.name}; these do: {others}"
            )
    usable = [each for each in found if each.c.type.dtype == sums]
    if not usable:
        raise ScheduleError(
            f"workload: the product sums in {sums}, {chosen.name} in {chosen.c.type.dtype}"
        )
    for each in usable:
        check_instruction(each)
    return usable
