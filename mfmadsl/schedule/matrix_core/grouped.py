"""A grouped product as a schedule: one kernel, whose workgroups find the rows of their tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

import tvm
from tvm import s_tir
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from mfmadsl.argument import check_type
from mfmadsl.language import find
from mfmadsl.model import Architecture, Intrinsic, Tiling, unscaled
from mfmadsl.passes.tir.annotation import BLOCKS_AT_A_TIME
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.builder import Builder
from mfmadsl.schedule.matrix_core.group_order import blocks_at_a_time, row_by_row
from mfmadsl.schedule.matrix_core.instruction import counting_up, of_one_instruction
from mfmadsl.schedule.matrix_core.selection import loads_of
from mfmadsl.schedule.matrix_core.stage import Staged, reads_turned
from mfmadsl.schedule.matrix_core.tiling.choice import (
    ProductShape,
    candidates,
    choose_instruction,
    equally_fast,
    estimated,
    gemm_on,
)
from mfmadsl.schedule.matrix_core.tiling.columns_together import ColumnsTogether, columns_together
from mfmadsl.schedule.matrix_core.tiling.cost import estimate
from mfmadsl.schedule.matrix_core.tiling.legal import check_instruction, check_tiling
from mfmadsl.schedule.matrix_core.tiling.reads import MemoryRead
from mfmadsl.schedule.product.column_groups import group_columns
from mfmadsl.schedule.product.dataflow import check_bound
from mfmadsl.schedule.product.grouped import GroupedProduct
from mfmadsl.schedule.product.grouped_tiles import tiled_groups, with_tables
from mfmadsl.schedule.product.memory import Memory
from mfmadsl.schedule.product.nest import function_of
from mfmadsl.schedule.product.plain import BlockRead, PlainProduct
from mfmadsl.tvm_refusal import tvm_refusal

_MOST_SUMS = 128 * 256
"""Of a tile whose B is computed on its way, which takes registers that larger ones have not."""


def grouped_schedule(
    product: GroupedProduct, intrinsic: Intrinsic | str | None, tiling: Tiling | None,
    chip: Architecture,
) -> Schedule:  # fmt: skip
    """What `gemm_schedule` gives for a grouped product. Raises ScheduleError as that does.

    The tables of a tile are put into the scheduled function, so its trace does not make them.
    """
    taken = grouped_tiling(product, intrinsic, tiling, chip)
    instruction = counting_up(unscaled(find(taken.instruction)))
    groups, m, n, k = product.extents
    blocks = blocks_at_a_time(taken, -(-m // groups), n, chip)
    with tvm_refusal("workload", ScheduleError):
        tiled = tiled_groups(product, (*taken.block, taken.k_step))
        sch = s_tir.Schedule(tvm.IRModule({"main": tiled.function}))
        plain = PlainProduct(
            sch.get_sblock(product.nest.name), _reads(product),
            (tiled.tiles, taken.block[0], n, k), Memory("j", n, n, _result_bytes(product)),
            ("A", "B", "C"), in_whole_tiles=True,
        )  # fmt: skip
        _Builder(sch, plain, instruction, taken, chip, tiled.store, blocks).build()
        function = with_tables(function_of(sch), tiled.tables)
    check_bound(function)
    return s_tir.Schedule(tvm.IRModule({"main": function}))


@dataclass(frozen=True)
class _Builder(Builder):
    """The primitives of a product of tiles, of which the block `rows` stores the rows; a die gets
    so many `blocks` of tiles in turn."""

    rows: str
    blocks: int

    def _bind_grid(self, layer: LoopRV, row: LoopRV, column: LoopRV) -> None:
        """Each layer is a tile of rows, and most neighbours are of one group."""
        super()._bind_grid(row, layer, column)

    def _annotate(self, k_step: LoopRV, tiles: Sequence[Staged]) -> None:
        """Each die gets tiles of all groups: some have more rows than others."""
        super()._annotate(k_step, tiles)
        self.sch.annotate(k_step, BLOCKS_AT_A_TIME, self.blocks)

    def _finish(self, result: SBlockRV, total: SBlockRV | None) -> None:
        sch = self.sch
        sch.set_scope(result, 0, "local")
        sch.reverse_compute_at(sch.get_sblock(self.rows), sch.get_loops(result)[-1])


def _reads(product: GroupedProduct) -> tuple[BlockRead, BlockRead]:
    sizes = _sizes(product)
    a, b = (
        BlockRead(name, side, Fraction(1), size, memory)
        for side, (name, size, memory) in enumerate(zip("AB", sizes, product.memories, strict=True))
    )
    prologue = product.prologue
    return a, b if prologue is None else replace(b, group=prologue.group)


def _sizes(product: GroupedProduct) -> tuple[int, int]:
    """The bytes of an element of A and of B."""
    a, b, _ = product.types
    return int(tvm.DataType(a).bits) // 8, int(tvm.DataType(b).bits) // 8


def _result_bytes(product: GroupedProduct) -> int:
    """The bytes of an element of what is stored; of groups of columns a lane stores as many
    together as it can."""
    return 1 if group_columns(product.function) > 1 else 4


def grouped_tiling(
    product: GroupedProduct, intrinsic: Intrinsic | str | None, tiling: Tiling | None,
    chip: Architecture,
) -> Tiling:  # fmt: skip
    """The tiling that is asked for, or that which should be the fastest by the formula.

    Raises ScheduleError for one that cannot be.
    """
    if tiling is None:
        return grouped_tilings(product, intrinsic, chip)[0]
    check_type("tiling", tiling, Tiling, "a Tiling")
    tiling, chosen = of_one_instruction(
        tiling, intrinsic, lambda asked: _instructions(product, asked, chip)
    )
    if tiling.split_k > 1 or tiling.k_waves > 1 or tiling.persistent:
        raise ScheduleError(
            f"tiling: split_k={tiling.split_k}, k_waves={tiling.k_waves},"
            f" persistent={tiling.persistent}: a product of groups, such as experts, takes 1, 1 and"
            " False, as its workgroups find their rows by themselves"
        )
    widest = max(_sizes(product))
    check_tiling(tiling, chosen, chip, (widest, widest), -(-product.extents[3] // tiling.k_step))
    _together(product, chip).check(tiling, chosen)
    return tiling


def _together(product: GroupedProduct, chip: Architecture) -> ColumnsTogether:
    """The columns that a wave has to store together."""
    turned = product.memories[1].axis == "j" and reads_turned(chip, _sizes(product)[1])
    return columns_together(group_columns(product.function), product.extents[2], turned)


def grouped_tilings(
    product: GroupedProduct, intrinsic: Intrinsic | str | None, chip: Architecture
) -> list[Tiling]:
    """The legal tilings that are worth a look, that which should be the fastest first."""
    instructions = _instructions(product, intrinsic, chip)
    groups, m, n, k = product.extents
    sizes, prologue = _sizes(product), product.prologue
    widest = max(sizes)
    reads = tuple(
        MemoryRead(side, widest, None) if each is None
        else MemoryRead(side, widest, None, each.stored, each.work)
        for side, each in enumerate((None, prologue))
    )  # fmt: skip
    loads = loads_of(product.memories, sizes, chip)
    together = _together(product, chip)

    instructions = [i for i in instructions if together.are_held_by(i)] or instructions
    named = {each.name: each for each in instructions}
    even, largest, others = (
        ProductShape(rows, n, k, count, reads, 4, loads)
        for rows, count in shapes_of_groups(groups, m)
    )

    def seconds(tiling: Tiling) -> float:
        """Of rows that are even, and of a group that has half of them."""
        shapes = (even, largest, others)
        on = [gemm_on(shape, named[tiling.instruction], chip) for shape in shapes]
        return sum(estimate(each, tiling).seconds for each in on)

    offered = (each for shape in (even, others) for _, each in estimated(shape, instructions, chip))
    plain = (
        together.kept(replace(tiling, persistent=False), named[tiling.instruction])
        for tiling in offered
        if tiling.split_k == 1 and tiling.k_waves == 1
        if prologue is None or prod(tiling.block) <= _MOST_SUMS
    )
    found = {row_by_row(tiling, n, chip): None for tiling in plain if tiling is not None}
    if not found:
        raise ScheduleError(f"no tiling for {instructions[0].name} fits {chip.name}")
    return sorted(found, key=seconds)


def shapes_of_groups(groups: int, m: int) -> tuple[tuple[int, int], ...]:
    """(rows, how many groups have so many) by which tilings are chosen: of groups that have as many
    each, then of one that has half of all rows, and of the others beside it."""
    others = groups - 1
    return (-(-m // groups), groups), (max(1, m // 2), 1), (max(1, m // 2 // others), others)


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
