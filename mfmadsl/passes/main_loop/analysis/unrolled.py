"""The body of a loop as statements one after the other, and what each of them does."""

from __future__ import annotations

from collections.abc import Iterator

from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import AllocBuffer, BufferStore, Evaluate, Expr, For, IfThenElse, SeqStmt, Stmt

from mfmadsl.passes.tir.error import NotUnderstoodError
from mfmadsl.passes.tir.expression import (
    constant,
    is_of_two,
    loads_of,
    name_of,
    narrowed,
    scope_of,
    substitute,
)
from mfmadsl.passes.tir.walk import mapped


def unrolled(
    statement: Stmt, analyzer: Analyzer
) -> Iterator[AllocBuffer | BufferStore | IfThenElse]:
    """The statements in order: inner loops unrolled, barriers left out, vectors of copies and of
    reads spelled out element by element."""
    if isinstance(statement, BufferStore):
        yield from _scalars(statement, analyzer)
    elif isinstance(statement, SeqStmt):
        for each in statement.seq:
            yield from unrolled(each, analyzer)
    elif isinstance(statement, For):
        extent, start = constant(statement.extent), constant(statement.min)
        if extent is None or start is None or statement.thread_binding is not None:
            raise NotUnderstoodError(
                f"loop `{statement.loop_var.name}` inside it has no fixed extent"
            )
        for x in range(start, start + extent):
            number = tirx.const(x, str(statement.loop_var.ty.dtype))
            yield from unrolled(substitute(statement.body, {statement.loop_var: number}), analyzer)
    elif isinstance(statement, AllocBuffer):
        yield statement
    elif isinstance(statement, Evaluate) and isinstance(statement.value, Call):
        if name_of(statement.value) != "tvm_storage_sync":
            raise NotUnderstoodError(f"`{statement.value}` has an effect")
    elif isinstance(statement, IfThenElse) and statement.else_case is None:
        for each in unrolled(statement.then_case, analyzer):
            if isinstance(each, AllocBuffer) or kind_of(store_of(each)) != "copy":
                raise NotUnderstoodError(f"it has a branch, on `{statement.condition}`")
            yield IfThenElse(analyzer.simplify(statement.condition), each, None)
    else:
        raise NotUnderstoodError(f"it has a {type(statement).__name__} in it")


def _scalars(store: BufferStore, analyzer: Analyzer) -> Iterator[BufferStore]:
    """A store of a vector as stores of elements, but for what computes in registers."""
    if len(store.indices) != 1:
        raise NotUnderstoodError(f"`{store.buffer.name}` is not flat")
    index, lanes = store.indices[0], 1
    if isinstance(index, tirx.Ramp):
        lanes = int(index.lanes)
    in_registers = scope_of(store.buffer) == "local"
    from_memory = any(scope_of(load.source) != "local" for load in loads_of(store.value))
    if in_registers and not from_memory:
        yield _simplified(store, analyzer)
        return
    for lane in range(lanes):
        place = element_of(index, lane, lanes)
        value = element_of(store.value, lane, lanes)
        yield _simplified(BufferStore(store.buffer, value, [place]), analyzer)


def element_of(value: Expr, lane: int, lanes: int) -> Expr:
    """One element of a vector; raises NotUnderstoodError where that cannot be told."""
    if lanes == 1:
        return value
    if isinstance(value, tirx.Ramp):
        return value.base + value.stride * lane
    if isinstance(value, tirx.Broadcast):
        return value.value
    if isinstance(value, TensorLoad):
        return tirx.BufferLoad(value.source, [element_of(i, lane, lanes) for i in value.indices])
    if isinstance(value, tirx.Cast):
        return tirx.Cast(_scalar_type(value), element_of(value.value, lane, lanes))
    if isinstance(value, tirx.Select):
        parts = (value.condition, value.true_value, value.false_value)
        return tirx.Select(*(_part(part, lane, lanes) for part in parts))
    if is_of_two(value):
        return type(value)(_part(value.a, lane, lanes), _part(value.b, lane, lanes))
    if isinstance(value, Call) and name_of(value) == "if_then_else":
        return tirx.if_then_else(*(_part(argument, lane, lanes) for argument in value.args))
    raise NotUnderstoodError(f"no element can be told of the vector `{value}`")


def _part(value: Expr, lane: int, lanes: int) -> Expr:
    """An element of an operand, which may be a scalar for all lanes."""
    kind = str(value.ty.dtype)
    return element_of(value, lane, lanes) if "x" in kind.removeprefix("custom") else value


def _scalar_type(value: Expr) -> str:
    return str(value.ty.dtype).partition("x")[0]


def _simplified(store: BufferStore, analyzer: Analyzer) -> BufferStore:
    def load(node: TensorLoad) -> Expr:
        near = scope_of(node.source) != "global"
        return tirx.BufferLoad(node.source, [_simple(i, analyzer, near) for i in node.indices])

    value = mapped(store.value, (TensorLoad, load))
    return BufferStore(store.buffer, value, [_simple(i, analyzer, True) for i in store.indices])


def _simple(index: Expr, analyzer: Analyzer, near: bool) -> Expr:
    """An index, simplified; in 32 bits, if it is one of the LDS or of registers."""
    if isinstance(index, tirx.Ramp):
        stride = narrowed(index.stride) if near else index.stride
        return tirx.Ramp(_simple(index.base, analyzer, near), stride, index.lanes)
    index = narrowed(index) if near else index
    return index if isinstance(index, tirx.IntImm) else analyzer.simplify(index)


def kind_of(statement: BufferStore) -> str:
    """What a statement does: "copy", "read" or "compute"."""
    target = scope_of(statement.buffer)
    sources = {scope_of(load.source) for load in loads_of(statement.value)}
    if target == "local" and sources == {"global"}:
        return "copy"
    if target == "shared" and (not sources or "global" in sources):
        return "copy"
    if target == "local" and sources <= {"local"}:
        return "compute"
    if target == "local" and sources == {"shared"} and isinstance(statement.value, TensorLoad):
        return "read"
    raise NotUnderstoodError(
        f"`{statement.buffer.name}[...] = {statement.value}` has no place in it"
    )


def store_of(statement: Stmt) -> BufferStore:
    """The store itself, of one that may stand in branches."""
    while isinstance(statement, IfThenElse):
        statement = statement.then_case
    assert isinstance(statement, BufferStore)
    return statement
