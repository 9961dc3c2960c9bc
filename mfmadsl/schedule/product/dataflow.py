"""What the blocks before and after a product must be, so that schedules may move them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeVar

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import PrimType, TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import Buffer, Expr, PrimFunc, Stmt

from mfmadsl.passes.kernel.cases import case_in, is_other
from mfmadsl.passes.tir.block import statements, with_root
from mfmadsl.passes.tir.walk import walk
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.nest import (
    SCHEDULED,
    Nest,
    check_plain,
    is_number,
    is_sum,
    loads,
    nests,
    same,
    writes_apart,
)

Found = TypeVar("Found", bound=tvm_ffi.Object)


def is_bound(loop: tirx.For) -> bool:
    """Whether a loop is that of a kernel already."""
    return loop.thread_binding is not None or SCHEDULED in loop.annotations


@dataclass(frozen=True)
class BufferAccess:
    """The buffers that a statement of a function's root block writes, and others that it reads."""

    statement: Stmt
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]

    @property
    def name(self) -> str:
        """What a message calls it."""
        found = _found(self.statement, s_tir.SBlock)
        return f"block `{found[-1].name_hint}`" if found else "a statement without a block"

    @property
    def bound(self) -> bool:
        """Whether it is a kernel of its own already."""
        return any(is_bound(loop) for loop in _found(self.statement, tirx.For))


def accesses(function: PrimFunc) -> list[BufferAccess]:
    """What each statement of the root block reads and writes, in order.

    Of the cases of a product only the last is listed: they all do the same.
    """
    return [_access(statement) for statement in statements(function) if not is_other(statement)]


def _access(statement: Stmt) -> BufferAccess:
    # The regions of blocks name what a buffer that is a part of another one is a part of.
    blocks = _found(statement, s_tir.SBlock)
    stores = _found(statement, tirx.BufferStore)
    reads = [load.source for load in loads(statement)]
    writes = [store.buffer for store in stores]
    reads += [region.source for block in blocks for region in block.reads]
    writes += [region.source for block in blocks for region in block.writes]
    before = [buffer for buffer in reads if not holds(writes, buffer)]
    return BufferAccess(statement, tuple(before), tuple(writes))


def written_for_cpu(function: PrimFunc, buffer: Buffer) -> bool:
    """Whether a buffer is the result of a kernel of a CPU, which is scheduled already."""
    return any(
        holds(access.writes, buffer)
        and any(SCHEDULED in loop.annotations for loop in _found(access.statement, tirx.For))
        for access in accesses(function)
    )


def check_written_once(function: PrimFunc) -> None:
    """Refuse a function in which blocks cannot change places: each buffer is written, then read."""
    every = accesses(function)
    for place, access in enumerate(every):
        for other in every[:place]:
            for verb, theirs in (("writes", other.writes), ("reads", other.reads)):
                for buffer in access.writes:
                    if holds(theirs, buffer):
                        raise ScheduleError(
                            f"{access.name} writes `{buffer.name}`, which {other.name} {verb}"
                            " before: only a buffer that is written once and then read is fused"
                        )


def check_bound(function: PrimFunc) -> None:
    """Refuse a function of which a statement is in no kernel: its loops are bound to no threads."""
    for statement in statements(function):
        case, access = case_in(statement), _access(statement)
        if case is not None:
            check_bound(with_root(function, case))
        elif not access.bound:
            raise ScheduleError(
                f"{access.name} is in no kernel: it neither computes a factor of the product nor"
                " uses what the product is"
            )


def check_compact(function: PrimFunc) -> None:
    """Refuse arguments that are parts of something larger: kernels reach memory by its shape."""
    for parameter in function.params:
        if isinstance(parameter.ty, PrimType):
            continue
        strides = list(parameter.strides)
        compact = [prod(parameter.shape[n + 1 :], start=1) for n in range(len(strides))]
        if not is_number(parameter.elem_offset, 0) or not all(
            Analyzer().can_prove_equal(a, b) for a, b in zip(strides, compact, strict=True)
        ):
            raise ScheduleError(
                f"workload: argument `{parameter.name}` has strides or an offset of its own: its"
                " elements must lie one after another"
            )


def check_producers(function: PrimFunc, nest: Nest) -> None:
    """Blocks that compute what a product reads are element-wise, or kernels of their own."""
    pending = [region.source for region in nest.block.reads]
    every = accesses(function)
    found = {nest.name}
    while pending:
        buffer = pending.pop()
        for access in every:
            if access.statement.same_as(nest.statement) or access.bound or access.name in found:
                continue
            if holds(access.writes, buffer):
                found.add(access.name)
                producer = _nest(function, access, "computes a factor")
                check_element_wise(producer)
                if holds(function.params, buffer):
                    raise producer.refusal(
                        f"computes `{buffer.name}`, a factor, which is a result as well"
                    )
                if not fills(producer):
                    raise producer.refusal("computes a factor, but leaves gaps in it or turns it")
                pending += access.reads


def check_consumers(function: PrimFunc, buffer: Buffer) -> list[Nest]:
    """The blocks after one that writes a buffer: element-wise ones that end in one result.

    Raises ScheduleError, with the name of the block, for any other.
    """
    results = [buffer]
    found: list[Nest] = []
    every = accesses(function)
    for access in every:
        if any(holds(access.reads, result) for result in results):
            consumer = _nest(function, access, f"reads `{buffer.name}`")
            check_element_wise(consumer)
            found.append(consumer)
            results.append(consumer.store.buffer)
    ends = _ends(function, buffer, found)
    if len(ends) > 1:
        raise ScheduleError(
            f"workload: `{ends[0].name}` is a result besides `{ends[1].name}`: a kernel keeps one"
        )
    return found


def fused_consumers(function: PrimFunc, buffer: Buffer) -> list[Nest]:
    """As many of the blocks after one that writes a buffer as are element-wise and end in one
    result; those that are left read that."""
    results = [buffer]
    found: list[Nest] = []
    for access in accesses(function):
        if access.bound or not any(holds(access.reads, result) for result in results):
            continue
        if consumer := _element_wise(function, access):
            found.append(consumer)
            results.append(consumer.store.buffer)
    while len(_ends(function, buffer, found)) > 1:
        found.pop()
    return found


def ends_plainly(function: PrimFunc, buffer: Buffer) -> bool:
    """Whether the element-wise blocks after one that writes a buffer read each element at the place
    of what they make of it, and end in one block: it needs no more of the buffer than it writes."""
    consumers = fused_consumers(function, buffer)
    made = [buffer]
    for nest in consumers:
        axes = [axis.var for axis in nest.block.iter_vars if not is_number(axis.dom.extent, 1)]
        for load in loads(nest.block.body):
            if holds(made, load.source) and not _are_axes(load, axes):
                return False
        made.append(nest.store.buffer)
    return bool(consumers) and all(fills(nest) for nest in consumers[:-1])


def _are_axes(load: TensorLoad, axes: Sequence[Expr]) -> bool:
    """Whether what is read is the element of all axes, each once."""
    own = [
        index
        for index, extent in zip(load.indices, load.source.shape, strict=True)
        if not is_number(extent, 1)
    ]
    return len(own) == len(axes) and all(
        sum(index.same_as(axis) for index in own) == 1 for axis in axes
    )


def unrelated(function: PrimFunc, product: Nest) -> list[Nest]:
    """Element-wise blocks of which neither the product is made nor they of it, such as a cast of a
    bias; not those that write results."""
    every = accesses(function)
    own = next(access for access in every if access.statement.same_as(product.statement))
    before, after = list(own.reads), list(own.writes)
    for access in every:
        if any(holds(access.reads, buffer) for buffer in after):
            after += access.writes
    for access in every[::-1]:
        if any(holds(access.writes, buffer) for buffer in before):
            before += access.reads
    found = []
    for access in every:
        if any(holds((*before, *after, *function.params), buffer) for buffer in access.writes):
            continue
        nest = _element_wise(function, access)
        if nest and fills(nest):
            found.append(nest)
    return found


def _element_wise(function: PrimFunc, access: BufferAccess) -> Nest | None:
    """The nest of a statement, if it is an element-wise block."""
    try:
        nest = _nest(function, access, "may be element-wise")
        check_element_wise(nest)
    except ScheduleError:
        return None
    return nest


def _ends(function: PrimFunc, buffer: Buffer, consumers: Sequence[Nest]) -> list[Buffer]:
    """Results, and what other blocks read, of a buffer and those that its consumers write."""
    others = [
        access
        for access in accesses(function)
        if not any(access.statement.same_as(nest.statement) for nest in consumers)
    ]
    inside = [load.source for nest in consumers for load in loads(nest.block.body)]
    return [
        result
        for result in [buffer, *(nest.store.buffer for nest in consumers)]
        if holds(function.params, result)
        or any(holds(access.reads, result) for access in others)
        or not holds(inside, result)
    ]


def check_element_wise(nest: Nest) -> None:
    """Refuse a block that does not compute each element of its buffer once, from no sum."""
    check_plain(nest)
    store = nest.block.body
    if is_sum(nest) or nest.block.init is not None:
        raise nest.refusal("sums, and only an element-wise block can be fused with a product")
    if not isinstance(store, tirx.BufferStore):
        raise nest.refusal("does more than to store one element: it cannot be fused")
    if any(load.source.same_as(store.buffer) for load in loads(store)):
        raise nest.refusal(f"reads `{store.buffer.name}`, which it writes")
    if any(loads(index) for index in store.indices):
        raise nest.refusal(f"writes `{store.buffer.name}` at a place that depends on data")
    if not writes_apart(nest, store):
        raise nest.refusal(f"may write one place of `{store.buffer.name}` several times")


def fills(nest: Nest) -> bool:
    """Whether an element-wise block writes each element of its buffer, at its own axes."""
    store = nest.store
    extents = {axis.var: axis.dom.extent for axis in nest.block.iter_vars}
    seen: list[Expr] = []
    for index, extent in zip(store.indices, store.buffer.shape, strict=True):
        if is_number(extent, 1) and is_number(index, 0):
            continue
        if not isinstance(index, tirx.Var) or index in seen or not same(extents.get(index), extent):
            return False
        seen.append(index)
    return True


def _nest(function: PrimFunc, access: BufferAccess, role: str) -> Nest:
    for nest in nests(function):
        if nest.statement.same_as(access.statement):
            return nest
    raise ScheduleError(f"{access.name}, which {role}, is no nest of loops of its own")


def _found(statement: Stmt, kind: type[Found]) -> list[Found]:
    found: list[Found] = []
    walk(statement, (kind, found.append))
    return found


def holds(several: Iterable[Buffer], buffer: Buffer) -> bool:
    """Whether a buffer is one of several; TVM tells them apart by identity."""
    return any(buffer.same_as(other) for other in several)
