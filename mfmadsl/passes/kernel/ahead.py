"""Loads of an unrolled loop with an edge, all of them before what is made of the first.

A load behind a condition waits for those of the iterations before it. Past the edge the element
before it is read in its place, so that loads need no condition:

    for u: if k(u) < n: sum += x[k(u)]      ->      for u: ahead[u] = x[min(k(u), n - 1)]
                                                    for u: if k(u) < n: sum += ahead[u]
"""

from __future__ import annotations

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import (
    AllocBuffer,
    Buffer,
    BufferStore,
    Expr,
    For,
    IfThenElse,
    PrimFunc,
    SeqStmt,
    Stmt,
)
from tvm.tirx.analysis import undefined_vars

from mfmadsl.passes.tir.annotation import AHEAD
from mfmadsl.passes.tir.expression import (
    among,
    choice_of,
    conjuncts_of,
    constant,
    depends,
    loads_of,
    scope_of,
    substitute,
    variables_of,
    widened,
)
from mfmadsl.passes.tir.linear import bounded
from mfmadsl.passes.tir.rewrite import with_body
from mfmadsl.passes.tir.walk import mapped, walk


def load_ahead(function: PrimFunc) -> PrimFunc:
    """The function, flattened, with the loads of annotated loops ahead of all else in them.

    A loop without one edge for all that it does stays as it is, and so does a load of anything but
    the elements that the edge is about, or behind a condition of its own.
    """
    return with_body(function, mapped(function.body, (For, _ahead)))


def _ahead(loop: For) -> Stmt:
    if AHEAD not in (loop.annotations or {}):
        return loop
    plain = _again(loop, loop.body)
    guard, count = loop.body, constant(loop.extent)
    if count is None or not isinstance(guard, IfThenElse) or guard.else_case is not None:
        return plain
    conditions = conjuncts_of(guard.condition)
    edge = bounded(conditions[0]) if len(conditions) == 1 else None
    if edge is None:
        return plain
    fetched: list[tuple[TensorLoad, Buffer]] = []

    def used(load: TensorLoad) -> Expr:
        buffer = next((buffer for other, buffer in fetched if _same(load, other)), None)
        return load if buffer is None else tirx.BufferLoad(buffer, [loop.loop_var])

    parts: list[Stmt] = []
    for load in _loads(guard.then_case, edge[0]):
        if used(load).same_as(load):
            buffer = tirx.decl_buffer([count], load.ty.dtype, "ahead", scope="local")
            value = tirx.BufferLoad(load.source, [_within(load.indices[0], *edge)])
            parts += [
                AllocBuffer(buffer),
                _again(loop, BufferStore(buffer, value, [loop.loop_var])),
            ]
            fetched.append((load, buffer))
    if not parts:
        return plain
    return SeqStmt([*parts, _again(loop, mapped(guard, (TensorLoad, used)))])


def _same(one: TensorLoad, other: TensorLoad) -> bool:
    alike = tvm_ffi.structural_equal(one.indices, other.indices)
    return bool(one.source.same_as(other.source) and alike)


def _again(loop: For, body: Stmt) -> For:
    """A loop with a variable of its own, around something else, and without annotations."""
    variable = tirx.Var(loop.loop_var.name, loop.loop_var.ty.dtype)
    body = substitute(body, {loop.loop_var: variable})
    return For(variable, loop.min, loop.extent, loop.kind, body, None, {})


def _loads(statement: Stmt, place: Expr) -> list[TensorLoad]:
    """Loads from memory at `place` elements behind what is the same for all that the edge is about,
    and from nothing that is stored to."""
    stores: list[BufferStore] = []
    conditional: list[tvm_ffi.Object] = []
    walk(
        statement,
        (BufferStore, stores.append),
        (IfThenElse, conditional.append),
        (Call, lambda call: conditional.append(call) if choice_of(call) else None),
    )
    behind = [load for each in conditional for load in loads_of(each)]
    around = undefined_vars(statement, [])
    return [
        load
        for load in loads_of(statement)
        if scope_of(load.source) == "global"
        and not any(_same(load, other) for other in behind)
        and not any(load.source.same_as(store.buffer) for store in stores)
        and all(among(variable, around) for variable in variables_of(load.indices[0]))
        and _is_behind(load.indices[0], place)
    ]


def _is_behind(index: Expr, place: Expr) -> bool:
    rest = Analyzer().simplify(widened(index) - widened(place))
    return not any(depends(rest, variable) for variable in variables_of(place))


def _within(index: Expr, place: Expr, edge: Expr) -> Expr:
    """The index of what lies there, or of the last before the edge."""
    index, place, edge = (widened(each) for each in (index, place, edge))
    return Analyzer().simplify(index - place) + tirx.min(place, edge - 1)
