"""A grouped product as a schedule: one kernel, whose workgroups find the rows of their tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import tvm
from tvm import s_tir
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx import PrimFunc

from mfmadsl.language import find
from mfmadsl.model import Architecture, Intrinsic, Tiling, unscaled
from mfmadsl.passes.tir.annotation import BLOCKS_AT_A_TIME
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.builder import Builder
from mfmadsl.schedule.matrix_core.group_choice import grouped_cases, sizes_of
from mfmadsl.schedule.matrix_core.group_order import blocks_at_a_time
from mfmadsl.schedule.matrix_core.instruction import counting_up
from mfmadsl.schedule.matrix_core.stage import Staged
from mfmadsl.schedule.matrix_core.tiling.cases import Case
from mfmadsl.schedule.product.cases import of_cases
from mfmadsl.schedule.product.column_groups import group_columns
from mfmadsl.schedule.product.dataflow import check_bound
from mfmadsl.schedule.product.grouped import GroupedProduct
from mfmadsl.schedule.product.grouped_tiles import tiled_groups, with_tables
from mfmadsl.schedule.product.memory import Memory
from mfmadsl.schedule.product.nest import function_of
from mfmadsl.schedule.product.plain import BlockRead, PlainProduct
from mfmadsl.tvm_refusal import tvm_refusal

_MANY_ROWS = 16384  # of a case that takes the rest


def grouped_schedule(
    product: GroupedProduct, intrinsic: Intrinsic | str | None,
    tiling: Tiling | Sequence[Case] | None, chip: Architecture,
) -> Schedule:  # fmt: skip
    """What `gemm_schedule` gives for a grouped product. Raises ScheduleError as that does.

    The tables of a tile are put into the scheduled function, so its trace does not make them.
    """
    cases = grouped_cases(product, intrinsic, tiling, chip)
    functions = [_scheduled(product, case, chip) for case in cases]
    function = functions[0]
    if len(functions) > 1:
        assert not isinstance(product.rows, int)
        function = of_cases(functions, product.rows, [case.up_to for case in cases])
    check_bound(function)
    return s_tir.Schedule(tvm.IRModule({"main": function}))


def _scheduled(product: GroupedProduct, case: Case, chip: Architecture) -> PrimFunc:
    """The function scheduled for the rows of a case."""
    taken = case.tiling
    instruction = counting_up(unscaled(find(taken.instruction)))
    groups, n, k = product.extents
    rows = product.rows if isinstance(product.rows, int) else max(case.up_to, default=_MANY_ROWS)
    blocks = blocks_at_a_time(taken, -(-rows // groups), n, chip)
    with tvm_refusal("workload", ScheduleError):
        tiled = tiled_groups(product, (*taken.block, taken.k_step))
        sch = s_tir.Schedule(tvm.IRModule({"main": tiled.function}))
        plain = PlainProduct(
            sch.get_sblock(product.nest.name), _reads(product),
            (tiled.tiles, taken.block[0], n, k), Memory("j", n, n, _result_bytes(product)),
            ("A", "B", "C"), in_whole_tiles=True,
        )  # fmt: skip
        _Builder(sch, plain, instruction, taken, chip, tiled.store, blocks).build()
        return with_tables(function_of(sch), tiled.tables)


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
    sizes = sizes_of(product)
    a, b = (
        BlockRead(name, side, Fraction(1), size, memory)
        for side, (name, size, memory) in enumerate(zip("AB", sizes, product.memories, strict=True))
    )
    prologue = product.prologue
    return a, b if prologue is None else replace(b, group=prologue.group)


def _result_bytes(product: GroupedProduct) -> int:
    """The bytes of an element of what is stored; of groups of columns a lane stores as many
    together as it can."""
    return 1 if group_columns(product.function) > 1 else 4
