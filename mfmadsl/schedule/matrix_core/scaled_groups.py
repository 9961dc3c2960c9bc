"""Groups of rows of scaled blocks as a schedule: one kernel, whose workgroups find their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tvm
from tvm import s_tir
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from mfmadsl.language import find
from mfmadsl.model import Architecture, Intrinsic, Tiling, unscaled
from mfmadsl.passes.tir.annotation import BLOCKS_AT_A_TIME
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.load import load_intrinsic
from mfmadsl.schedule.matrix_core.block_scaled import (
    BlockScaledBuilder,
    columns_in_tiles,
    parts_of_scaled,
)
from mfmadsl.schedule.matrix_core.block_scaled_tiling import (
    block_scaled_tiling,
    estimator,
    offered_tilings,
)
from mfmadsl.schedule.matrix_core.group_choice import shapes_of_groups
from mfmadsl.schedule.matrix_core.group_order import blocks_at_a_time, row_by_row
from mfmadsl.schedule.matrix_core.instruction import counting_up
from mfmadsl.schedule.matrix_core.stage import Staged
from mfmadsl.schedule.product.dataflow import check_bound
from mfmadsl.schedule.product.grouped_tiles import with_tables
from mfmadsl.schedule.product.nest import function_of
from mfmadsl.schedule.product.scaled_group_tiles import tiled_scaled_groups
from mfmadsl.schedule.product.scaled_groups import ScaledGroups
from mfmadsl.tvm_refusal import tvm_refusal


def scaled_groups_schedule(
    product: ScaledGroups, intrinsic: Intrinsic | str | None, tiling: Tiling | None,
    chip: Architecture,
) -> Schedule:  # fmt: skip
    """What `gemm_schedule` gives for groups of rows of scaled blocks. Raises ScheduleError as that
    does.

    The tables of a tile are put into the scheduled function, so its trace does not make them.
    """
    taken = _tiling(product, intrinsic, tiling, chip)
    tile = load_intrinsic(counting_up(unscaled(find(taken.instruction))), taken.k_pack)
    groups, n, _ = product.extents
    assert isinstance(product.rows, int)
    blocks = blocks_at_a_time(taken, -(-product.rows // groups), n, chip)
    with tvm_refusal("workload", ScheduleError):
        columns = columns_in_tiles(product.scaled, tile, taken, chip)
        tiles = *taken.block, parts_of_scaled(product.scaled, taken)[1]
        tiled = tiled_scaled_groups(product, tiles, (tile.M, tile.N), columns.column, columns.place)
        sch = s_tir.Schedule(tvm.IRModule({"main": tiled.function}))
        _Builder(
            sch, tiled.product, tiled.names, tile, columns, taken, chip, tiled.store, blocks
        ).build()
        function = with_tables(function_of(sch), tiled.tables)
    check_bound(function)
    return s_tir.Schedule(tvm.IRModule({"main": function}))


@dataclass(frozen=True)
class _Builder(BlockScaledBuilder):
    """The primitives of products of tiles, of which the block `rows` stores the rows; a die gets
    so many `blocks` of tiles in turn."""

    rows: str
    blocks: int

    def _bind_grid(self, layer: LoopRV, row: LoopRV, column: LoopRV) -> None:
        """Each layer is a tile of rows, and most neighbours are of one group."""
        super()._bind_grid(row, layer, column)

    def _annotate(self, step: LoopRV, copies: Sequence[Staged]) -> None:
        """Each die gets tiles of all groups: some have more rows than others."""
        super()._annotate(step, copies)
        self.sch.annotate(step, BLOCKS_AT_A_TIME, self.blocks)

    def _finish(self, store: SBlockRV, parts: SBlockRV | None) -> None:
        sch = self.sch
        sch.set_scope(store, 0, "local")
        sch.reverse_compute_at(sch.get_sblock(self.rows), sch.get_loops(store)[-1])


def _tiling(
    product: ScaledGroups, intrinsic: Intrinsic | str | None, tiling: Tiling | None,
    chip: Architecture,
) -> Tiling:  # fmt: skip
    """The tiling that is asked for, or that which should be the fastest by the formula.

    Raises ScheduleError for one that cannot be.
    """
    if tiling is None:
        return scaled_groups_tilings(product, intrinsic, chip)[0]
    taken = block_scaled_tiling(product.scaled, intrinsic, tiling, chip)
    if taken.split_k > 1:
        raise ScheduleError(f"tiling: split_k={taken.split_k}: a product of groups has 1")
    return taken


def scaled_groups_tilings(
    product: ScaledGroups, intrinsic: Intrinsic | str | None, chip: Architecture
) -> list[Tiling]:
    """The legal tilings that are worth a look, that which should be the fastest first."""
    groups, n, _ = product.extents
    assert isinstance(product.rows, int)
    m = product.rows
    even, largest, others = (product.of_rows(*each) for each in shapes_of_groups(groups, m))
    estimates = [estimator(each, chip) for each in (even, largest, others)]

    def seconds(tiling: Tiling) -> float:
        """Of rows that are even, and of a group that has half of them."""
        return sum(estimate(tiling).seconds for estimate in estimates)

    offered = {
        row_by_row(tiling, n, chip): None
        for shape in (even, others)
        for tiling in offered_tilings(shape, intrinsic, chip)
        if tiling.split_k == 1
    }
    return sorted(offered, key=seconds)
