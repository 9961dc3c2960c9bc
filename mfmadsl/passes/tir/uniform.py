"""Registers that hold the same in all threads: what was made of nothing that differs among them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from tvm.tirx import (
    AttrStmt,
    Bind,
    Buffer,
    BufferStore,
    Expr,
    For,
    IfThenElse,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
)

from mfmadsl.passes.tir.expression import among, loads_of, scope_of, variables_of
from mfmadsl.passes.tir.walk import walk


def uniform_registers(function: PrimFunc, loop: For, threads: Collection[Var]) -> list[Buffer]:
    """The registers that are the same in all threads, and that a loop does not write.

    `threads` are the indices of the threads. What is made of memory that the function writes, of
    the LDS, or of other lanes' registers, may differ among them.
    """
    found = _Stores(list(threads))
    found.visit(function.body, ())
    local = [(buffer, of) for buffer, of in found.stores if scope_of(buffer) == "local"]
    differing = {b.__chandle__() for b, _ in found.stores if scope_of(b) != "local"}
    while True:
        more = [
            buffer.__chandle__()
            for buffer, made_of in local
            if buffer.__chandle__() not in differing
            and any(_differs(each, found.differing, differing) for each in made_of)
        ]
        if not more:
            break
        differing.update(more)
    inside = _Stores([])
    inside.visit(loop.body, ())
    taken = differing.union(buffer.__chandle__() for buffer, _ in inside.stores)
    return [buffer for buffer, _ in local if buffer.__chandle__() not in taken]


@dataclass
class _Stores:
    """All stores of a statement, each with what decides on it, and variables that may differ."""

    differing: list[Var]
    stores: list[tuple[Buffer, Sequence[Expr]]] = field(default_factory=list)

    def visit(self, statement: Stmt, around: tuple[Expr, ...]) -> None:
        """Take the stores of a statement, on which the expressions `around` it decide."""
        if isinstance(statement, SeqStmt):
            for each in statement.seq:
                self.visit(each, around)
        elif isinstance(statement, BufferStore):
            made_of = (statement.value, *statement.indices, *around)
            self.stores.append((statement.buffer, made_of))
        elif isinstance(statement, For):
            self.visit(statement.body, (*around, statement.min, statement.extent))
        elif isinstance(statement, IfThenElse):
            for part in filter(None, (statement.then_case, statement.else_case)):
                self.visit(part, (*around, statement.condition))
        elif isinstance(statement, AttrStmt):
            self.visit(statement.body, around)
        elif isinstance(statement, Bind):
            if any(among(v, self.differing) for v in variables_of(statement.value)) or loads_of(
                statement.value
            ):
                self.differing.append(statement.var)
        else:
            self._visit_unknown(statement)

    def _visit_unknown(self, statement: Stmt) -> None:
        """What stands in a statement of no known kind may differ."""
        inside: list[BufferStore] = []
        walk(statement, (BufferStore, inside.append))
        self.stores += [(store.buffer, self.differing) for store in inside]


def _differs(expression: Expr, variables: Collection[Var], buffers: set[int]) -> bool:
    """Whether an expression may differ among threads, as these variables and buffers do."""
    if any(among(variable, variables) for variable in variables_of(expression)):
        return True
    return any(
        scope_of(load.source) not in ("global", "local") or load.source.__chandle__() in buffers
        for load in loads_of(expression)
    )
