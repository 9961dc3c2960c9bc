"""Workgroups that have nothing to store do nothing.

Where all that a kernel writes is behind a bound, such as the rows of an expert, a workgroup past it
would load and multiply for nothing. What holds of each of its stores is asked once, ahead:

    first[0] + row < last[0], for the rows of a tile      ->   first[0] < last[0]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tvm import tirx
from tvm.ir import Call
from tvm.sym import Analyzer
from tvm.tirx import (
    AllocBuffer,
    AttrStmt,
    Bind,
    Buffer,
    BufferStore,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
)

from mfmadsl.passes.tir.annotation import PIPELINE
from mfmadsl.passes.tir.bounds import bind_loop, bind_thread
from mfmadsl.passes.tir.expression import (
    among,
    conjuncts_of,
    loads_of,
    multiplied_out,
    name_of,
    scope_of,
    total,
    variables_of,
)
from mfmadsl.passes.tir.linear import bounded
from mfmadsl.passes.tir.uniform import uniform_registers
from mfmadsl.passes.tir.walk import walk


def without_idle_work(function: PrimFunc) -> PrimFunc:
    """The device function with its main loop, and all after it, where a workgroup stores anything.

    It stays as it is unless one bound, the same for all threads, is part of all conditions of its
    stores to memory.
    """
    threads: list[Var] = []
    analyzer = Analyzer()

    def rewrite(statement: Stmt) -> Stmt:
        if isinstance(statement, AttrStmt):
            if statement.attr_key == "thread_extent":
                bind_thread(analyzer, statement)
                if str(statement.node.thread_tag).startswith("threadIdx"):
                    threads.append(statement.node.var)
            body = rewrite(statement.body)
            return AttrStmt(statement.node, statement.attr_key, statement.value, body)
        if not isinstance(statement, SeqStmt):
            return statement
        parts = list(statement.seq)
        place = next((n for n, part in enumerate(parts) if _is_main_loop(part)), None)
        if place is None:
            return SeqStmt([*parts[:-1], rewrite(parts[-1])])
        return SeqStmt(_asked_ahead(parts, place, function, threads, analyzer))

    return function.with_body(rewrite(function.body))


def _is_main_loop(statement: Stmt) -> bool:
    return isinstance(statement, For) and PIPELINE in (statement.annotations or {})


def _asked_ahead(
    parts: Sequence[Stmt], place: int, function: PrimFunc, threads: Sequence[Var],
    analyzer: Analyzer,
) -> list[Stmt]:  # fmt: skip
    """The statements, those from the main loop at `place` on behind the bound of all their stores,
    and as many before it as leave that bound as it is."""
    loop = parts[place]
    assert isinstance(loop, For)
    found = _Guarded(threads, function, loop, analyzer)
    for part in parts[place:]:
        found.visit(part, ())
    if (bound := found.bound) is None:
        return list(parts)
    first = place
    while first and not _changes(parts[first - 1], bound):
        first -= 1
    return [*parts[:first], IfThenElse(bound, SeqStmt(list(parts[first:])), None)]


def _changes(statement: Stmt, bound: Expr) -> bool:
    """Whether a statement has a part in a bound, or anything but stores to registers."""
    if isinstance(statement, AllocBuffer | Bind):
        return True
    stores: list[BufferStore] = []
    others: list[Evaluate] = []
    walk(statement, (BufferStore, stores.append), (Evaluate, others.append))
    read = [load.source for load in loads_of(bound)]
    return bool(others) or any(
        scope_of(store.buffer) != "local" or any(map(store.buffer.same_as, read))
        for store in stores
    )


@dataclass
class _Guarded:
    """What all stores to memory of some statements have as a bound, or that there is none."""

    threads: Sequence[Var]
    function: PrimFunc
    loop: For
    analyzer: Analyzer
    bounds: dict[str, tuple[Expr, Expr, int]] | None = None
    fails: bool = False

    @cached_property
    def registers(self) -> Sequence[Buffer]:
        """Those that are the same for all threads."""
        return uniform_registers(self.function, self.loop, self.threads)

    @property
    def bound(self) -> Expr | None:
        """The weakest bound that they have in common."""
        if self.fails or not self.bounds:
            return None
        part, limit, least = next(iter(self.bounds.values()))
        return tirx.LT(part + tirx.const(least, str(part.ty.dtype)), limit)

    def visit(self, statement: Stmt, conditions: tuple[Expr, ...]) -> None:
        """Take the stores of a statement that stands behind conditions."""
        if isinstance(statement, SeqStmt):
            for each in statement.seq:
                self.visit(each, conditions)
        elif isinstance(statement, For):
            bind_loop(self.analyzer, statement)
            self.visit(statement.body, conditions)
        elif isinstance(statement, IfThenElse) and statement.else_case is None:
            asked = tuple(conjuncts_of(statement.condition))
            self.visit(statement.then_case, (*conditions, *asked))
        elif isinstance(statement, BufferStore):
            if scope_of(statement.buffer) == "global":
                self._take(conditions)
        elif not isinstance(statement, AllocBuffer) and not _is_barrier(statement):
            self.fails = True

    def _take(self, conditions: Sequence[Expr]) -> None:
        """Keep the bounds that one more store has, too, as far as it goes below them."""
        if self.bounds is not None and not self.bounds:
            return
        own: dict[str, tuple[Expr, Expr, int]] = {}
        for condition in conditions:
            if (parts := self._uniform(condition)) is not None:
                own[f"{parts[0]} {parts[1]}"] = parts
        if self.bounds is None:
            self.bounds = own
            return
        self.bounds = {
            key: (part, limit, min(least, own[key][2]))
            for key, (part, limit, least) in self.bounds.items()
            if key in own
        }

    def _uniform(self, condition: Expr) -> tuple[Expr, Expr, int] | None:
        """(what is the same for all threads, its limit, the least of the rest) of a bound."""
        sides = bounded(condition)
        if sides is None or not loads_of(sides[0]) or not self._is_same(sides[1]):
            return None
        terms = multiplied_out(sides[0])
        dtype = str(sides[0].ty.dtype)
        same = total([t for t in terms if self._is_same(t) and loads_of(t)], dtype)
        rest = total([t for t in terms if not (self._is_same(t) and loads_of(t))], dtype)
        least = int(self.analyzer.const_int_bound(rest).min_value)
        if not loads_of(same) or abs(least) >= 1 << 30:
            return None
        return same, sides[1], least

    def _is_same(self, expression: Expr) -> bool:
        """Whether an expression is the same for all threads of a workgroup."""
        if any(among(variable, self.threads) for variable in variables_of(expression)):
            return False
        # Memory is not asked ahead: there may be none where another condition does not hold.
        sources = [load.source for load in loads_of(expression)]
        return all(any(map(source.same_as, self.registers)) for source in sources)


def _is_barrier(statement: Stmt) -> bool:
    value = statement.value if isinstance(statement, Evaluate) else None
    return isinstance(value, Call) and name_of(value) == "tvm_storage_sync"
