"""Registers: what a wave holds together becomes registers of each of its lanes.

A buffer of scope `warp` has the axes [..., lane, register]. Where every lane touches its own
elements only, which is so wherever the lane is provably threadIdx.x, the axis goes away and the
rest are registers. TVM's LowerWarpMemory, which can also exchange elements between lanes, takes one
buffer a run and no vectors, so it gets what is left.

Registers have no addresses: loops over them are unrolled, or they would be memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import AllocBuffer, AttrStmt, Buffer, BufferStore, Expr, For, ForKind, PrimFunc

from mfmadsl.passes.tir.bounds import bind_loop, bind_thread
from mfmadsl.passes.tir.expression import constant, depends, scope_of
from mfmadsl.passes.tir.rewrite import with_body
from mfmadsl.passes.tir.walk import mapped, walk

_MOST_UNROLLED = 1024  # statements that a loop over registers may become


def registers(function: PrimFunc) -> PrimFunc:
    """The function, not flattened yet, with `warp` buffers as `local` ones where that is right."""
    allocations: list[Buffer] = []

    def allocated(statement: AllocBuffer) -> None:
        if scope_of(statement.buffer) == "warp":
            allocations.append(statement.buffer)

    walk(function.body, (AllocBuffer, allocated))
    if not allocations:
        return function
    analyzer, lanes = _bounds(function)
    own = {b.__chandle__(): b for b in allocations if _own_lanes(function, b, analyzer, lanes)}
    new = {
        handle: tirx.decl_buffer([*b.shape[:-2], b.shape[-1]], b.dtype, b.name, scope="local")
        for handle, b in own.items()
    }

    def load(node: TensorLoad) -> Expr:
        target = new.get(node.source.__chandle__())
        return node if target is None else tirx.BufferLoad(target, _without_lane(node.indices))

    def store(node: BufferStore) -> BufferStore:
        target = new.get(node.buffer.__chandle__())
        if target is None:
            return node
        return BufferStore(target, node.value, _without_lane(node.indices))

    def allocation(node: AllocBuffer) -> AllocBuffer:
        target = new.get(node.buffer.__chandle__())
        return node if target is None else AllocBuffer(target)

    body = mapped(
        function.body, (TensorLoad, load), (BufferStore, store), (AllocBuffer, allocation)
    )
    return with_body(function, body)


def unroll_over_registers(function: PrimFunc) -> PrimFunc:
    """The function with each loop unrolled whose variable is in an index of a `local` buffer."""

    def loop(node: For) -> For:
        extent = constant(node.extent)
        if node.kind != ForKind.SERIAL or extent is None or node.annotations:
            return node
        if extent > _MOST_UNROLLED or not _indexes_registers(node):
            return node
        return For(
            node.loop_var, node.min, node.extent, ForKind.UNROLLED, node.body, None, {}
        )  # fmt: skip

    return with_body(function, mapped(function.body, (For, loop)))


def _bounds(function: PrimFunc) -> tuple[Analyzer, list[tirx.Var]]:
    """What loops and threads run over, and the variables that are the lane."""
    analyzer, lanes = Analyzer(), []

    def thread(node: AttrStmt) -> None:
        bind_thread(analyzer, node)
        if node.attr_key == "thread_extent" and str(node.node.thread_tag) == "threadIdx.x":
            lanes.append(node.node.var)

    walk(function.body, (For, lambda node: bind_loop(analyzer, node)), (AttrStmt, thread))
    return analyzer, lanes


def _own_lanes(
    function: PrimFunc, buffer: Buffer, analyzer: Analyzer, lanes: list[tirx.Var]
) -> bool:
    """Whether each lane only reaches its own elements of the buffer."""
    places: list[Expr] = []

    def load(node: TensorLoad) -> None:
        if node.source.same_as(buffer):
            places.append(node.indices[-2])

    def store(node: BufferStore) -> None:
        if node.buffer.same_as(buffer):
            places.append(node.indices[-2])

    walk(function.body, (TensorLoad, load), (BufferStore, store))
    return len(buffer.shape) >= 2 and all(
        any(analyzer.can_prove_equal(place, lane) for lane in lanes) for place in places
    )


def _without_lane(indices: Sequence[Expr]) -> list[Expr]:
    return [*indices[:-2], indices[-1]]


def _indexes_registers(loop: For) -> bool:
    found: list[bool] = []

    def index(buffer: Buffer, indices: Sequence[Expr]) -> None:
        if scope_of(buffer) == "local":
            found.append(any(depends(i, loop.loop_var) for i in indices))

    walk(
        loop.body,
        (TensorLoad, lambda node: index(node.source, node.indices)),
        (BufferStore, lambda node: index(node.buffer, node.indices)),
    )
    return any(found)
