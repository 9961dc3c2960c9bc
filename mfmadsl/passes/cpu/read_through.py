"""Copies that are only needed at an edge: elsewhere what they copy is read as it lies.

A tile that is padded with zeros past the edge of a matrix is a copy, though most tiles have none:

    own[0:8, 0:k] = choice(i + row < m, a[i + row, 0:k], 0)
    use(own)

becomes

    if i + 8 <= m:
        use(a[i:i + 8, 0:k])
    else: the copy, and use(own)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import (
    AllocBuffer,
    Buffer,
    BufferStore,
    DeclBuffer,
    Expr,
    For,
    IfThenElse,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
)

from mfmadsl.passes.tir.expression import constant, depends, loads_of, name_of, step_of, substitute
from mfmadsl.passes.tir.linear import bounded
from mfmadsl.passes.tir.rewrite import with_body
from mfmadsl.passes.tir.walk import mapped, walk


def read_through_copies(function: PrimFunc) -> PrimFunc:
    """The function, whose buffers are flat, with such copies made at edges only.

    A copy stays everywhere where its elements do not lie as those of its source do, where what it
    is filled up with is not beyond an upper bound, or where it or its source is written later on.
    """
    if _has_aliases(function):
        return function
    return with_body(function, mapped(function.body, (SeqStmt, _sequence)))


def _has_aliases(function: PrimFunc) -> bool:
    """Whether two buffers are declared of the same memory: a store to one is one to the other."""
    declared: list[DeclBuffer] = []
    walk(function.body, (DeclBuffer, declared.append))
    memory = [str(each.data) for each in declared]
    return len(set(memory)) < len(memory)


def _sequence(node: SeqStmt) -> Stmt:
    statements = list(node.seq)
    for position, allocated in enumerate(statements[:-2]):
        if not isinstance(allocated, AllocBuffer):
            continue
        copy = _copy(allocated.buffer, statements[position + 1])
        rest = statements[position + 2 :]
        if copy is None or not all(_only_read(b, rest) for b in (copy.buffer, copy.source)):
            continue
        # What a place is read from may be another thing later on.
        if loads_of(copy.offset):
            continue
        through: Stmt = tirx.stmt_seq(*map(copy.through, rest))
        whole = SeqStmt(statements[position:])
        chosen = IfThenElse(copy.inside, through, whole)
        return SeqStmt([*statements[:position], chosen]) if position else chosen
    return node


@dataclass(frozen=True)
class _Copy:
    """`buffer[x]` is `source[x + offset]` for each x, if `inside` holds."""

    buffer: Buffer
    source: Buffer
    offset: Expr
    inside: Expr

    def through(self, statement: Stmt) -> Stmt:
        """The statement with the source in place of the copy."""

        def load(node: TensorLoad) -> TensorLoad:
            if not node.source.same_as(self.buffer):
                return node
            (index,) = node.indices
            return tirx.BufferLoad(self.source, [_moved(index, self.offset)])

        return mapped(statement, (TensorLoad, load))


def _moved(index: Expr, offset: Expr) -> Expr:
    if isinstance(index, tirx.Ramp):
        return tirx.Ramp(index.base + offset, index.stride, index.lanes)
    return index + offset


def _copy(buffer: Buffer, statement: Stmt) -> _Copy | None:
    """The copy that a statement makes into the buffer, if it is one that can be read through."""
    loops: list[For] = []
    while isinstance(statement, For | IfThenElse):
        if isinstance(statement, For):
            loops.append(statement)
            statement = statement.body
        elif statement.else_case is None:
            statement = statement.then_case
        else:
            return None
    if not isinstance(statement, BufferStore) or not statement.buffer.same_as(buffer):
        return None
    value = statement.value
    if not isinstance(value, Call) or name_of(value) != "if_then_else":
        return None
    condition, taken, _ = value.args
    if not isinstance(taken, TensorLoad) or len(taken.indices) != 1:
        return None
    offset = Analyzer().simplify(taken.indices[0] - statement.indices[0])
    inside = _everywhere(condition, loops)
    if inside is None or any(depends(offset, loop.loop_var) for loop in loops):
        return None
    return _Copy(buffer, taken.source, offset, inside)


def _everywhere(condition: Expr, loops: Sequence[For]) -> Expr | None:
    """The condition for all iterations of the loops; None if the last is not the strictest."""
    if isinstance(condition, tirx.And):
        left, right = (_everywhere(part, loops) for part in (condition.a, condition.b))
        return None if left is None or right is None else tirx.And(left, right)
    sides = bounded(condition)
    if sides is None:
        return None
    difference = sides[0] - sides[1]
    for loop in loops:
        first, extent = constant(loop.min), constant(loop.extent)
        grows = step_of(difference, loop.loop_var)
        if first is None or extent is None or grows is None or grows < 0:
            return None
        last = tirx.IntImm("int32", first + extent - 1)
        difference = substitute(difference, {loop.loop_var: last})
    return Analyzer().simplify(difference < 0)


def _only_read(buffer: Buffer, statements: Sequence[Stmt]) -> bool:
    """Whether statements do nothing with a buffer but read its elements: its address may be used to
    write."""
    uses: list[Buffer] = []
    loads: list[TensorLoad] = []
    calls: list[Call] = []
    for statement in statements:
        walk(statement, (Var, uses.append))
        walk(statement, (TensorLoad, loads.append))
        walk(statement, (Call, calls.append))
    addresses = [call.args[0] for call in calls if name_of(call) == "address_of"]
    sources = [load.source for load in loads]
    sources_of_addresses = [load.source for load in addresses if isinstance(load, TensorLoad)]
    return _count(buffer, uses) == _count(buffer, sources) and not _count(
        buffer, sources_of_addresses
    )


def _count(buffer: Buffer, among: Sequence[Buffer]) -> int:
    return sum(other.same_as(buffer) for other in among)
