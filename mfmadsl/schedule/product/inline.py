"""What computes an operand, inlined into the copy of it."""

from __future__ import annotations

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import SBlockRV

from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.dataflow import is_bound
from mfmadsl.tvm_refusal import tvm_refusal


def inline_producers(sch: Schedule, block: SBlockRV) -> None:
    """Inline what computes what a block reads, but for kernels of their own and what cannot be."""
    pending = list(sch.get_producers(block))
    while pending:
        producer = pending.pop()
        if any(is_bound(sch.get(loop)) for loop in sch.get_loops(producer)):
            continue
        theirs = sch.get_producers(producer)
        try:
            with tvm_refusal("workload", ScheduleError):
                sch.compute_inline(producer)
        except ScheduleError:
            continue
        pending += [each for each in theirs if not any(each.same_as(other) for other in pending)]
