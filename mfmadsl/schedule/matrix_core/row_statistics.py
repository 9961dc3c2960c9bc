"""Statistics of rows in the kernel of the product that they normalise."""

from __future__ import annotations

import tvm
from tvm.s_tir import SBlockRealize, Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx import PrimFunc

from mfmadsl.passes.tir.block import in_sequence, statements, with_parts, with_root
from mfmadsl.passes.tir.expression import bits_of
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.tiling.resources import CHUNK
from mfmadsl.schedule.product.row_statistics import RowStatistics
from mfmadsl.tvm_refusal import tvm_refusal


def with_row_statistics(scheduled: PrimFunc, statistics: RowStatistics) -> Schedule:
    """The scheduled workload of statistics, in which each workgroup computes them first.

    All threads of a workgroup share a row, and find the results in the LDS. Raises ScheduleError
    where several kernels ask for them.
    """
    assert isinstance(scheduled.body, SBlockRealize)
    root, count = scheduled.body.block, len(statistics.buffers)
    own = list(scheduled.params)[-count:]
    assert all(a.same_as(b) for a, b in zip(own, statistics.buffers, strict=True))
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
    consumers = sch.get_consumers(block)
    around = [loop for loop in sch.get_loops(consumers[0]) if _tag(sch, loop)]
    grids = [loop for loop in around if _tag(sch, loop).startswith("blockIdx")]
    if not grids:
        raise ScheduleError(
            f"block `{sch.get(block).name_hint}` is asked for by what is no kernel of the product"
        )
    waves, lanes = (
        next(int(sch.get(loop).extent) for loop in around if _tag(sch, loop) == f"threadIdx.{axis}")
        for axis in "yx"
    )
    for place in range(len(sch.get(block).writes)):
        sch.set_scope(block, place, "shared")
    sch.compute_at(block, grids[-1])
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
