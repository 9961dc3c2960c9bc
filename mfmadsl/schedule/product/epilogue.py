"""What comes after a product: folded into the block that stores it, or a kernel of its own.

TVM's primitives lose a predicate without a word where a second block is inlined backwards, and
where what is inlined does not read each element at its own place. So all blocks but the last are
inlined forward, and the last one backwards, if it reads plainly.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx import Expr, IterVar, Var

from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.dataflow import fills, fused_consumers
from mfmadsl.schedule.product.nest import Nest, function_of, is_number, nest_of
from mfmadsl.tvm_refusal import tvm_refusal

THREADS = 256
"""Threads of a workgroup of a kernel that computes elements one by one."""


def fold_epilogue(sch: Schedule, block: SBlockRV) -> tuple[SBlockRV, ...]:
    """Fold the blocks after `block`, which stores a product, into it.

    Element-wise ones that cannot be folded become kernels of their own, which are given back. What
    is not element-wise is left, and what would be a second result.
    """
    last = fold_forward(sch, block)
    if len(last) == 1 and reads_plainly(sch, block, last[0]) and folded_back(sch, last[0]):
        return ()
    for each in last:
        element_kernel(sch, each)
    return last


def folded_back(sch: Schedule, last: SBlockRV) -> bool:
    """Inline a block into the one that it reads, unless TVM does not know how."""
    try:
        with tvm_refusal("workload", ScheduleError):
            sch.reverse_compute_inline(last)
    except ScheduleError:
        return False
    return True


def fold_into_total(sch: Schedule, total: SBlockRV) -> tuple[SBlockRV, ...]:
    """The kernels after a product split along K: `total` adds up the parts.

    It is computed where the last block needs it, if that reads plainly.
    """
    last = fold_forward(sch, total)
    plainly = len(last) == 1 and reads_plainly(sch, total, last[0])
    if not plainly:
        element_kernel(sch, total)
    threads = [element_kernel(sch, each) for each in last]
    if plainly:
        sch.set_scope(total, 0, "local")
        sch.compute_at(total, threads[0])
        return last
    return (total, *last)


def add_up_waves(
    sch: Schedule, total: SBlockRV, workgroup: LoopRV, threads: tuple[int, int]
) -> SBlockRV:
    """The block that stores the sums of a tile of which waves have a part each, in the LDS: `total`
    adds them up, by all threads of the loop of a workgroup of so many waves and lanes."""
    stored: SBlockRV = sch.cache_write(total, 0, "local")
    for block in (total, stored):
        sch.reverse_compute_at(block, workgroup, preserve_unit_loops=True)
    *_, rows, columns = sch.get_loops(stored)
    _, wave, lane = sch.split(sch.fuse(rows, columns), [None, *threads])
    sch.bind(wave, "threadIdx.y")
    sch.bind(lane, "threadIdx.x")
    sch.compute_at(total, lane, preserve_unit_loops=True)
    return stored


def fold_forward(sch: Schedule, block: SBlockRV) -> tuple[SBlockRV, ...]:
    """Inline all blocks after `block` into the last; all of them where one cannot be inlined."""
    consumers = fused_consumers(function_of(sch, block), sch.get(block).writes[0].source)
    blocks = _in_schedule(sch, block, consumers)
    if not all(fills(nest) for nest in consumers[:-1]):
        return tuple(blocks)
    for each in blocks[:-1]:
        sch.compute_inline(each)
    return tuple(blocks[-1:])


def _in_schedule(sch: Schedule, block: SBlockRV, consumers: Sequence[Nest]) -> list[SBlockRV]:
    """The blocks that consume a block's result, each perhaps by others; cases share their names."""
    found = [block]
    for nest in consumers:
        several = [each for before in found for each in sch.get_consumers(before)]
        found.append(next(each for each in several if sch.get(each).same_as(nest.block)))
    return found[1:]


def reads_plainly(sch: Schedule, block: SBlockRV, last: SBlockRV) -> bool:
    """Whether `last` reads what `block` writes at each of its own axes once, and nowhere else.

    Only then the predicate that TVM gives a block inlined backwards is right.
    """
    written = sch.get(block).writes[0].source
    axes = [axis for axis in sch.get(last).iter_vars if not is_number(axis.dom.extent, 1)]
    units = [axis.var for axis in sch.get(last).iter_vars if is_number(axis.dom.extent, 1)]
    for read in sch.get(last).reads:
        if not read.source.same_as(written):
            continue
        if not all(is_number(part.extent, 1) for part in read.region):
            return False
        places = [
            part.min
            for part, extent in zip(read.region, written.shape, strict=True)
            if not _is_only_place(part.min, extent, units)
        ]
        own = [axis.var for axis in axes]
        if len(places) != len(own) or not all(
            sum(place.same_as(variable) for place in places) == 1 for variable in own
        ):
            return False
    return True


def _is_only_place(index: Expr, extent: Expr, units: list[Var]) -> bool:
    """Whether an index is the one that a dimension of one element has."""
    if any(index.same_as(unit) for unit in units):
        return True
    return is_number(extent, 1) and isinstance(index, tirx.IntImm)


def element_kernel(sch: Schedule, block: SBlockRV) -> LoopRV:
    """Compute the elements of a block in a kernel of its own, one a thread; the thread's loop."""
    nest = nest_of(sch, block)
    places = [
        value
        for axis, value in zip(nest.block.iter_vars, nest.realize.iter_values, strict=True)
        if axis.iter_type == IterVar.DataPar
    ]
    loops = [
        loop
        for loop, found in zip(sch.get_loops(block), nest.loops, strict=True)
        if any(found.loop_var.same_as(place) for place in places)
    ]
    whole = sch.fuse(*loops) if loops else sch.add_unit_loop(block)
    group, thread = sch.split(whole, [None, THREADS])
    sch.bind(group, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    return thread
