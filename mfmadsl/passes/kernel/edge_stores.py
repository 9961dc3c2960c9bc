"""Stores under a condition, of which the buffer's end drops those that are not wanted.

Past the end of its buffer a store through a descriptor does nothing. Behind a branch each store
would get one of its own, and its address anew. A row that is not there lies past the end already:

    if row < m: C[row * n + column] = x      ->      C, which ends at m * n, [row * n + column] = x
    if column < n: C[row * n + column] = x   ->      C[column < n ? row * n + column : the end] = x
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Generic, TypeVar

import tvm
import tvm_ffi
from tvm import tirx
from tvm.sym import Analyzer
from tvm.tirx import (
    AttrStmt,
    Buffer,
    BufferStore,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    PrimFunc,
    SeqStmt,
    Stmt,
)

from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.bounds import bind_loop, bind_thread
from mfmadsl.passes.tir.expression import (
    WORD,
    among,
    bits_of,
    bytes_of,
    conjuncts_of,
    constant,
    i32,
    loads_of,
    multiple_of,
    multiplied_out,
    narrowed,
    of_length,
    scope_of,
    total,
    variables_of,
    widened,
)
from mfmadsl.passes.tir.linear import bounded, common_factor, largest, linear
from mfmadsl.passes.tir.rewrite import with_body
from mfmadsl.passes.tir.speculation import is_speculatable
from mfmadsl.passes.tir.walk import mapped, walk

Found = TypeVar("Found")

_RECORDS = 2147483644
"""The bytes of the largest buffer that a descriptor describes here."""


def without_edge_branches(function: PrimFunc) -> PrimFunc:
    """The device function with stores of registers under a condition made unconditional.

    A store stays as it is where a lane's own place in the buffer has no bounds, or what is stored
    may not be there.
    """
    kernel = _Kernel()

    def attribute(node: AttrStmt) -> None:
        if node.attr_key == "thread_extent":
            bind_thread(kernel.analyzer, node)
            if str(node.node.thread_tag).startswith("blockIdx"):
                kernel.blocks.append(node.node.var)

    loop = partial(bind_loop, kernel.analyzer)
    walk(function.body, (AttrStmt, attribute), (For, loop))
    body = mapped(function.body, (IfThenElse, kernel.without_branch))
    return with_body(function, body)


class _Memo(Generic[Found]):
    """What was found of expressions, for others that are the same."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, ...], list[tuple[tuple[Expr, ...], Found]]] = {}

    def of(self, expressions: tuple[Expr, ...], make: Callable[[], Found]) -> Found:
        """What was found before, or what `make` makes."""
        key = tuple(map(tvm_ffi.structural_hash, expressions))
        for others, found in self._found.setdefault(key, []):
            if all(map(tvm_ffi.structural_equal, others, expressions)):
                return found
        found = make()
        self._found[key].append((expressions, found))
        return found


@dataclass(frozen=True)
class _Place:
    """Where a lane stores: elements that are the same for a workgroup, a lane's own, of which each
    term has bounds, and those `ahead` of both.

    LLVM may take a constant apart from a lane's own elements, also one that it finds later: what is
    left must be no less than 0, for it counts without a sign.
    """

    origin: Expr
    own: Expr
    least: int
    most: int
    ahead: int


@dataclass(frozen=True)
class _Row:
    """A place as `length` times a row and the rest of it, with bounds of both."""

    length: int
    least_row: int
    column: Expr
    least: int
    most: int


@dataclass
class _Kernel:
    """What is known of a kernel's indices, and those that are the same in all threads.

    Stores differ by constants, mostly: what is without them is looked at once.
    """

    analyzer: Analyzer = field(default_factory=Analyzer)
    blocks: list[tirx.Var] = field(default_factory=list)
    places: _Memo[_Place] = field(default_factory=_Memo)
    rows: _Memo[_Row | None] = field(default_factory=_Memo)
    most: _Memo[int | None] = field(default_factory=_Memo)
    ends: _Memo[bool] = field(default_factory=_Memo)

    def without_branch(self, branch: IfThenElse) -> Stmt:
        """A branch with its stores made unconditional: where they are not wanted, past the end."""
        if branch.else_case is not None:
            return branch
        body, conditions = branch.then_case, conjuncts_of(branch.condition)
        parts = list(body.seq) if isinstance(body, SeqStmt) else [body]
        stores = [each for each in parts if isinstance(each, BufferStore)]
        if len(stores) < len(parts):
            return branch
        if not is_speculatable(branch.condition):
            return branch
        through = [self._through_descriptor(each, conditions) for each in stores]
        found = [each for each in through if each is not None]
        if len(found) < len(stores):
            return branch
        return found[0] if len(found) == 1 else SeqStmt(found)

    def _through_descriptor(self, store: BufferStore, conditions: Sequence[Expr]) -> Stmt | None:
        """A store that does nothing where conditions do not hold; None if there is no such one."""
        if scope_of(store.buffer) != "global" or len(store.indices) != 1:
            return None
        index, lanes = _first(store.indices[0])
        dtype, bits = str(store.value.ty.dtype), bits_of(store.value.ty.dtype)
        size = bits // 8
        length = lanes * size
        if length not in device.KINDS or bits % 8 or dtype.startswith("bool"):
            return None
        if tvm.DataType(store.buffer.dtype).lanes != 1:
            return None
        if length > WORD and multiple_of(index) * size % WORD:
            return None
        if not is_speculatable(store.value):
            return None
        moving, ahead = _apart(index)
        place = self.places.of((moving,), lambda: self._place(moving))
        ahead += place.ahead
        if place.least < 0 or ahead < 0 or (place.most + ahead) * size + length > _RECORDS:
            return None
        offset, origin = narrowed(place.own) * size, place.origin * size
        asked = self._asked(conditions, store.buffer, index, lanes)
        # Of strides whose first is not the largest TVM tells the end too early: it says nothing.
        end = bytes_of(store.buffer) if len(asked) < len(conditions) else origin + _RECORDS
        if asked:
            offset = device.select(reduce(tirx.And, asked), offset, i32(device.PAST_THE_END))
        called = device.call(
            "int32", f"buffer.store.{device.KINDS[length]}", _words(store.value, length),
            store.buffer.data, origin, end, offset + i32(ahead * size),
        )  # fmt: skip
        return Evaluate(called)

    def _place(self, moving: Expr) -> _Place:
        kind = str(moving.ty.dtype)
        numbers, terms = [], []
        for term in multiplied_out(moving):
            number = constant(self.analyzer.simplify(term))
            if number is None:
                terms.append(term)
            else:
                numbers.append(number)
        own = [term for term in terms if not self._is_shared(term)]
        bounds = [self.analyzer.const_int_bound(term) for term in own]
        least = min((int(bound.min_value) for bound in bounds), default=0)
        return _Place(
            total([term for term in terms if self._is_shared(term)], "int64"), total(own, kind),
            -1 if loads_of(moving) else least, sum(int(bound.max_value) for bound in bounds),
            sum(numbers),
        )  # fmt: skip

    def _asked(
        self, conditions: Sequence[Expr], buffer: Buffer, index: Expr, lanes: int
    ) -> list[Expr]:
        """The conditions of a store but for the one, perhaps, that holds just where its place is
        inside the buffer if the others do."""
        for number, condition in enumerate(conditions):
            others = [*conditions[:number], *conditions[number + 1 :]]
            if self._is_end(condition, others, buffer, index, lanes):
                return others
        return list(conditions)

    def _is_end(
        self, condition: Expr, others: Sequence[Expr], buffer: Buffer, index: Expr, lanes: int
    ) -> bool:
        """Whether a condition holds just where a place is inside a buffer, if others do."""
        if (sides := bounded(condition)) is None:
            return False
        (moving, ahead), (own, more), limit = _apart(index), _apart(sides[0]), sides[1]
        row = self.rows.of((moving, own), lambda: self._row(moving, own))
        if row is None or row.least_row + more < 0:
            return False
        after = ahead - more * row.length
        if row.least + after < 0:
            return False
        most: int | None = row.most
        if row.most + after + lanes > row.length:
            most = self.most.of((row.column, *others), partial(self._most, row.column, others))
        if most is None or most + after + lanes > row.length:
            return False
        (extent,) = buffer.shape
        return self.ends.of(
            (extent, limit, i32(row.length)),
            partial(self.analyzer.can_prove_equal, widened(extent), widened(limit) * row.length),
        )

    def _most(self, column: Expr, conditions: Sequence[Expr]) -> int | None:
        """What a part of a place is at most where conditions hold; None if no number is known."""
        found = [largest(column, conditions, self.analyzer)]
        for part, limit in filter(None, map(bounded, conditions)):
            of_part, of_column = linear(part).coefficients, linear(column).coefficients
            shares = [of_column.get(key, 0) // factor for key, factor in of_part.items()]
            times, number = min(shares, default=0), constant(limit)
            # A condition that was divided by what divides all of it has other factors.
            if times > 0 and number is not None:
                rest = self.analyzer.simplify(column - part * times)
                over = int(self.analyzer.const_int_bound(rest).max_value)
                found.append((number - 1) * times + over)
        return min((each for each in found if each is not None), default=None)

    def _row(self, moving: Expr, own: Expr) -> _Row | None:
        length = common_factor(linear(moving), linear(own))
        if length is None or loads_of(own) or loads_of(moving):
            return None
        column = self.analyzer.simplify(moving - own * length)
        bound = self.analyzer.const_int_bound(column)
        least_row = int(self.analyzer.const_int_bound(own).min_value)
        return _Row(length, least_row, column, int(bound.min_value), int(bound.max_value))

    def _is_shared(self, term: Expr) -> bool:
        """Whether a term is made of the workgroup's place."""
        found = variables_of(term)
        return bool(found) and all(among(variable, self.blocks) for variable in found)


def _first(index: Expr) -> tuple[Expr, int]:
    """The first of the elements that an index names, and how many there are, one after another."""
    if isinstance(index, tirx.Ramp) and constant(index.stride) == 1:
        return index.base, int(index.lanes)
    return index, 1


def _apart(expression: Expr) -> tuple[Expr, int]:
    """An expression, simplified before, without its constant, and that constant."""
    if isinstance(expression, tirx.Add) and (number := constant(expression.b)) is not None:
        return expression.a, number
    return expression, 0


def _words(value: Expr, length: int) -> Expr:
    """The bits of a value, as the functions for buffers take them."""
    if length < WORD:
        return tirx.reinterpret(f"uint{8 * length}", value).astype("int32")
    return tirx.reinterpret(of_length("int32", length // WORD), value)
