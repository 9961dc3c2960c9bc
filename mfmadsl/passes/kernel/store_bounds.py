"""The bounds of a thread's stores to memory, asked before it loads what it makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import tvm_ffi
from tvm import tirx
from tvm.tirx import AllocBuffer, BufferStore, Expr, For, IfThenElse, SeqStmt, Stmt

from mfmadsl.passes.tir.device import reads_other_lanes
from mfmadsl.passes.tir.expression import calls_of, conjuncts_of, loads_of, scope_of


def asked_ahead(statement: Stmt) -> Stmt:
    """A statement with what all stores of a sequence to memory have as a condition asked before it.

    A thread that stores nothing would load for nothing, of tiles of which the parts may be missing.
    But where lanes exchange values, one that stores nothing has what another one asks for.
    """
    if isinstance(statement, For):
        body = asked_ahead(statement.body)
        return For(
            statement.loop_var, statement.min, statement.extent, statement.kind, body,
            statement.thread_binding, statement.annotations, statement.step, statement.span,
        )  # fmt: skip
    if not isinstance(statement, SeqStmt):
        return statement
    parts = _together([asked_ahead(each) for each in statement.seq])
    asked: list[list[Expr]] = []
    for part in parts:
        if not _collect(part, (), asked):
            return SeqStmt(parts)
    common = [c for c in asked[0] if all(_has(own, c) for own in asked[1:])] if asked else []
    if any(loads_of(condition) for condition in common) or not common:
        return SeqStmt(parts)
    return IfThenElse(reduce(tirx.And, common), SeqStmt(parts), None)


def _together(parts: Sequence[Stmt]) -> list[Stmt]:
    """Statements with those behind one condition that follow each other behind one branch: their
    loads are on their way at once."""
    found: list[Stmt] = []
    for part in parts:
        last = found[-1] if found else None
        if (
            isinstance(last, IfThenElse)
            and isinstance(part, IfThenElse)
            and last.else_case is None
            and part.else_case is None
            and not loads_of(part.condition)
            and tvm_ffi.structural_equal(last.condition, part.condition)
        ):
            both = [*_flat(last.then_case), *_flat(part.then_case)]
            found[-1] = IfThenElse(part.condition, SeqStmt(both), None)
        else:
            found.append(part)
    return found


def _flat(statement: Stmt) -> list[Stmt]:
    return list(statement.seq) if isinstance(statement, SeqStmt) else [statement]


def _has(conditions: list[Expr], one: Expr) -> bool:
    return any(tvm_ffi.structural_equal(each, one) for each in conditions)


def _collect(statement: Stmt, conditions: tuple[Expr, ...], found: list[list[Expr]]) -> bool:
    """Add the conditions of each store to memory and of each exchange between lanes; whether all
    else is of a thread's own."""
    if isinstance(statement, SeqStmt):
        return all(_collect(each, conditions, found) for each in statement.seq)
    if isinstance(statement, For):
        return _collect(statement.body, conditions, found)
    if isinstance(statement, IfThenElse) and statement.else_case is None:
        return _collect(
            statement.then_case, (*conditions, *conjuncts_of(statement.condition)), found
        )
    if isinstance(statement, BufferStore):
        scope = scope_of(statement.buffer)
        if scope == "global" or any(map(reads_other_lanes, calls_of(statement.value))):
            found.append(list(conditions))
        return scope in ("global", "local")
    return isinstance(statement, AllocBuffer) and scope_of(statement.buffer) == "local"
