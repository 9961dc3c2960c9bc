"""Statistics of rows in the kernel of the product that they normalise."""

from __future__ import annotations

from math import prod

import tvm
from tvm.s_tir import SBlockRealize, Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx import PrimFunc

from mfmadsl.model import Architecture, Tiling
from mfmadsl.passes.tir.block import in_sequence, statements, with_parts, with_root
from mfmadsl.passes.tir.expression import bits_of
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.tiling.resources import CHUNK
from mfmadsl.schedule.product.row_statistics import MOST_ROWS, RowStatistics
from mfmadsl.schedule.product.sum_of_products import product_nest, sum_of_products
from mfmadsl.tvm_refusal import tvm_refusal


def leaves_room(tiling: Tiling, statistics: RowStatistics, chip: Architecture) -> bool:
    """Whether the LDS holds what a workgroup adds up statistics in, beside the tiles.

    In many kernels that lies where a tile will be, but not in all.
    """
    product = sum_of_products(product_nest(statistics.workload))
    size = max(bits_of(factor.source.dtype) for factor in (product.first, product.second)) // 8
    tiles = tiling.stages * tiling.k_step * sum(tiling.block) * size
    if tiling.k_waves > 1:
        sums = tiling.k_waves * prod(tiling.block) * bits_of(product.sum_type) // 8
        in_tile = not tiling.persistent and sums <= tiling.k_step * min(tiling.block) * size
        tiles += 0 if in_tile else sums
    own = sum(
        (tiling.wave_count + MOST_ROWS) * bits_of(each.dtype) // 8 for each in statistics.buffers
    )
    return tiles + own <= chip.lds_bytes


def with_row_statistics(scheduled: PrimFunc, statistics: RowStatistics) -> Schedule:
    """The scheduled workload of statistics, in which each workgroup computes them first.

    All threads of a workgroup share a row, and find the results in the LDS. Raises ScheduleError
    where several kernels ask for them, and where the product is of parameters of other types.
    """
    assert isinstance(scheduled.body, SBlockRealize)
    root, count = scheduled.body.block, len(statistics.buffers)
    own = list(scheduled.params)[-count:]
    parameters = zip(scheduled.params, statistics.workload.params, strict=True)
    if not all(one.same_as(other) for one, other in parameters):
        raise statistics.nests[0].refusal(
            "is a sum of what the kernel takes as another type: compute it in a function of its own"
        )
    body = in_sequence([*(nest.statement for nest in statistics.nests), *statements(scheduled)])
    whole = with_parts(root, body=body, allocated=[*root.alloc_buffers, *own])
    function = PrimFunc(
        list(scheduled.params)[:-count], with_root(scheduled, whole).body, scheduled.ret_type,
        attrs=scheduled.attrs,
    )  # fmt: skip
    sch = Schedule(tvm.IRModule({"main": function}))
    with tvm_refusal("workload", ScheduleError):
        for nest in reversed(statistics.nests):
            _in_workgroup(sch, sch.get_sblock(nest.name))
    return sch


def _in_workgroup(sch: Schedule, block: SBlockRV) -> None:
    """Compute a statistic at the start of the workgroups that ask for it."""
    around = [
        [loop for loop in sch.get_loops(consumer) if _tag(sch, loop)]
        for consumer in sch.get_consumers(block)
    ]
    grids = [[each for each in loops if _tag(sch, each).startswith("blockIdx")] for loops in around]
    alike = {sch.get(each[-1]).__chandle__() if each else None for each in grids}
    if len(alike) != 1 or None in alike:
        raise ScheduleError(
            f"block `{sch.get(block).name_hint}` is asked for by other kernels than one of the"
            " product: compute it in a function of its own"
        )
    tags = {_tag(sch, loop): sch.get(loop).extent for loop in around[0]}
    waves, lanes = int(tags["threadIdx.y"]), int(tags["threadIdx.x"])
    for place in range(len(sch.get(block).writes)):
        sch.set_scope(block, place, "shared")
    sch.compute_at(block, grids[0][-1])
    *_, along = sch.get_loops(block)
    size = max(bits_of(region.source.dtype) for region in sch.get(block).reads) // 8
    step, wave, lane, element = sch.split(along, [None, waves, lanes, max(1, CHUNK // size)])
    sch.bind(wave, "threadIdx.y")
    sch.bind(lane, "threadIdx.x")
    sch.reorder(wave, lane, step, element)
    sch.unroll(element)


def _tag(sch: Schedule, loop: LoopRV) -> str:
    """What a loop is bound to, or nothing."""
    binding = sch.get(loop).thread_binding
    return "" if binding is None else str(binding.thread_tag)
