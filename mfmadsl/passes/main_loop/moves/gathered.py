"""Indices that copies read from memory: what is read has a name then, and a place with that name in
it is linear in the loop.

Those that stay the same in the loop are read ahead of it. The rows of a product of experts are an
example: `x[rows[i], k] * w[expert[b], j, k]`. Others are read an iteration ahead (`Fetch`), such as
the pages of a cache: `k[pages[b, j // 16], j % 16]`. Where such a page is longer than a tile, the
place in it is computed in each iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import tvm_ffi
from tvm import ir, tirx
from tvm.ir import Call, TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import Bind, Buffer, BufferStore, Expr, For, IfThenElse, PrimFunc, Stmt, Var

from mfmadsl.passes.main_loop.analysis.kernel import EnclosingKernel
from mfmadsl.passes.main_loop.analysis.unrolled import store_of
from mfmadsl.passes.main_loop.moves.element import Element
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.expression import (
    bits_of,
    choice_of,
    conjuncts_of,
    constant,
    depends,
    is_of_two,
    loads_of,
    scope_of,
    substitute,
    variables_of,
)
from mfmadsl.passes.tir.linear import largest, linear_in
from mfmadsl.passes.tir.uniform import uniform_registers
from mfmadsl.passes.tir.walk import mapped, walk

Copy = BufferStore | IfThenElse
Context = tuple[Expr, ...]
"""Conditions under which an expression is evaluated."""

_LARGEST = (1 << 31) - 2  # that an index may be
_OF_ITS_OWN = (tirx.FloorDiv, tirx.FloorMod, tirx.Min, tirx.Max)


@dataclass(frozen=True)
class Gathered:
    """Indices that are read of memory, or computed: the variable of each, and what it is.

    Those of `moving` are another in each iteration. `ranges` are what those may be that are known
    to lie in one.
    """

    values: Mapping[Var, Expr] = field(default_factory=dict)
    moving: frozenset[Var] = frozenset()
    ranges: Mapping[Var, ir.Range] = field(default_factory=dict)

    def within(
        self, elements: Sequence[Element], analyzer: Analyzer,
        threads: Mapping[str, int] | None = None,
    ) -> Gathered:  # fmt: skip
        """The same, but that none leads out of its array.

        Where one would, nobody asks for the element: a condition does not hold, or the array has
        no such element. What lies there must not be reached, even so. Where no place tells, one
        that is the same for all `threads`, if these are known, is what it is.
        """
        values, analyzer = dict(self.values), analyzer.clone()
        ranges: dict[Var, ir.Range] = {}
        for variable, value in self.values.items():
            if isinstance(value, tirx.FloorMod):  # computed
                ranges[variable] = ir.Range(tirx.const(0, str(value.ty.dtype)), value.b)
                analyzer.bind(variable, ranges[variable], True)
        for variable, value in self.values.items():
            if variable in ranges:
                continue
            bound = _bound(value, analyzer)
            ends = _ends(variable, elements, analyzer)
            if ends is None:
                dtype = str(variable.ty.dtype)
                # What is the same for all threads is added in 64 bits.
                is_same = threads is not None and not _differs(value, threads)
                if bound[0] >= 0 and dtype == "int32" and is_same:
                    first, last = (tirx.const(end, dtype) for end in (bound[0], _LARGEST + 1))
                    ranges[variable] = ir.Range(first, last)
                continue
            least, most = max(ends[0], bound[0]), min(ends[1], bound[1])
            if least > most:
                continue
            dtype = str(variable.ty.dtype)
            first, last = tirx.const(least, dtype), tirx.const(most, dtype)
            values[variable] = tirx.max(tirx.min(value, last), first)
            ranges[variable] = ir.Range(first, tirx.const(most + 1, dtype))
        return Gathered(values, self.moving, ranges)

    def bind(self, analyzer: Analyzer) -> None:
        """Tell the analyzer what they may be."""
        for variable, extent in self.ranges.items():
            analyzer.bind(variable, extent, True)

    def statements(self, threads: Mapping[str, int]) -> list[Bind]:
        """The statements that read those that stay the same; `threads` are the thread indices."""
        return [
            Bind(variable, _read(value, threads))
            for variable, value in self.values.items()
            if variable not in self.moving
        ]


def gathered_ahead(
    copies: Sequence[Copy], loop: For, kernel: EnclosingKernel, analyzer: Analyzer
) -> tuple[list[Copy], Gathered]:
    """The copies of a loop, with a variable for each index that is read.

    Where the loop's own condition guards such a read, it has to lie in its buffer without that, or
    the first iteration reads it anyway. What the function writes is not read ahead, but for
    registers that are the same in all threads. Of those that change, integers of 32 bits have a
    variable whose places are told by the loop. All others stay as they are.
    """
    if not any(map(_gathers, copies)):
        return list(copies), Gathered()
    function, threads = kernel.function, kernel.threads.variables.values()
    registers = uniform_registers(function, loop, threads)
    reader = _Reader(loop, analyzer, _written(function), registers)
    named = [_named(each, reader) for each in copies]
    moving = frozenset(found.variable for found in reader.found if found.is_moving)
    return named, Gathered({found.variable: found.value for found in reader.found}, moving)


def _gathers(copy: Copy) -> bool:
    """Whether an index or a condition of a copy reads memory."""
    store = store_of(copy)
    found = [index for load in loads_of(store) for index in load.indices]

    def choice(node: Expr) -> None:
        if (parts := choice_of(node)) is not None:
            found.append(parts[0])

    walk(store.value, (Call, choice), (tirx.Select, choice))
    outer: Stmt = copy
    while isinstance(outer, IfThenElse):
        found.append(outer.condition)
        outer = outer.then_case
    return any(map(loads_of, found))


def _written(function: PrimFunc) -> list[Buffer]:
    """All arrays that the function writes."""
    stores: list[BufferStore] = []
    walk(function.body, (BufferStore, stores.append))
    return [store.buffer for store in stores if scope_of(store.buffer) == "global"]


@dataclass(frozen=True)
class _Found:
    is_asked: bool
    variable: Var
    value: Expr
    is_moving: bool = False


@dataclass
class _Reader:
    """What has been read so far, and what may be."""

    loop: For
    analyzer: Analyzer
    written: Sequence[Buffer]
    registers: Sequence[Buffer]
    found: list[_Found] = field(default_factory=list)

    def read(self, index: Expr, context: Context, is_asked: bool) -> Expr:
        """A variable for what is read, or that itself where it cannot be one.

        A condition, which asks for it as it is, has a variable of its own: that of a place is kept
        within an array.
        """
        if not self._stays(index):
            return index if is_asked else self._read_anew(index, context)
        value = index
        if context and not self._exists(index):
            conditions = [part for each in context for part in conjuncts_of(each)]
            asked = [each for each in conditions if not self._holds_at_first(each)]
            if any(self._changes(each) or loads_of(each) for each in asked):
                return index
            for condition in reversed(asked):
                value = tirx.if_then_else(condition, value, tirx.const(0, str(index.ty.dtype)))
        return self._name(value, is_asked, is_moving=False)

    def _read_anew(self, index: Expr, context: Context) -> Expr:
        """A variable for an index that changes in the loop, or that itself where it cannot be one.

        Where it leads out of its buffer, which no element does that someone asks for, it is 0.
        """
        if not isinstance(index, TensorLoad) or str(index.ty.dtype) != "int32":
            return index
        if not self._keeps(index.source) or len(index.indices) != 1:
            return index
        known = len(self.found)
        place = _index(index.indices[0], self, context, is_asked=False)
        if loads_of(place) or any(self._is_moving(v) for v in variables_of(place)):
            del self.found[known:]  # it stays as it is, and what is read for it
            return index
        return self._name(tirx.BufferLoad(index.source, [place]), False, is_moving=True)

    def place_in_page(self, place: Expr) -> Expr:
        """A place beside an index that changes, linear in the loop and in variables: what else of
        it changes is a variable that is computed in each iteration, such as `j % 64`."""
        variable = self.loop.loop_var
        if not any(map(self._is_moving, variables_of(place))) or linear_in(place, variable):
            return place

        def named(part: tirx.FloorMod) -> Expr:
            return self._name(part, False, is_moving=True) if depends(part, variable) else part

        return mapped(place, (tirx.FloorMod, named))

    def _name(self, value: Expr, is_asked: bool, is_moving: bool) -> Expr:
        """The variable of a value that is read."""
        for known in self.found:
            if known.is_asked == is_asked and self._are_same(known.value, value):
                return known.variable
        source = next((load.source.name for load in loads_of(value)), "place")
        variable = Var(f"{source}.{len(self.found)}", str(value.ty.dtype))
        self.found.append(_Found(is_asked, variable, value, is_moving))
        return variable

    def _stays(self, index: Expr) -> bool:
        """Whether it is one integer, the same in all iterations."""
        dtype = str(index.ty.dtype)
        if not dtype.startswith(("int", "uint")) or "x" in dtype or bits_of(dtype) % 8:
            return False
        return not self._changes(index) and all(
            self._keeps(load.source) for load in loads_of(index)
        )

    def _changes(self, expression: Expr) -> bool:
        """Whether it may be another in each iteration."""
        return depends(expression, self.loop.loop_var)

    def _is_moving(self, variable: Var) -> bool:
        """Whether it is one that is read anew in each iteration."""
        return any(each.is_moving and each.variable.same_as(variable) for each in self.found)

    def _holds_at_first(self, condition: Expr) -> bool:
        """Whether it holds in the first iteration, which there is, and perhaps not in others."""
        if not self._changes(condition) or not self.analyzer.can_prove(self.loop.extent > 0):
            return False
        at_first = substitute(condition, {self.loop.loop_var: self.loop.min})
        return self.analyzer.can_prove(at_first)

    def _keeps(self, buffer: Buffer) -> bool:
        """Whether a buffer keeps what it has throughout the loop."""
        if scope_of(buffer) == "local":
            return any(buffer.same_as(each) for each in self.registers)
        return scope_of(buffer) == "global" and not any(map(buffer.same_as, self.written))

    def _exists(self, index: Expr) -> bool:
        """Whether all that it reads lies in its buffer, whatever conditions hold."""
        return all(
            not loads_of(place)
            and self.analyzer.can_prove(place >= 0)
            and self.analyzer.can_prove(place < extent)
            for load in loads_of(index)
            for place, extent in zip(load.indices, load.source.shape, strict=True)
        )

    def _are_same(self, one: Expr, other: Expr) -> bool:
        """Whether two values are written alike, or are elements of one buffer at one place."""
        if isinstance(one, TensorLoad) and isinstance(other, TensorLoad):
            alike = one.source.same_as(other.source)
            return alike and self._are_same(one.indices[0], other.indices[0])
        if tvm_ffi.structural_equal(one, other):
            return True
        plain = not loads_of(one) and not loads_of(other)
        return plain and constant(self.analyzer.simplify(one - other)) == 0


def _named(copy: Copy, reader: _Reader, context: Context = ()) -> Copy:
    """A copy with what its indices and conditions read replaced."""
    if isinstance(copy, IfThenElse):
        condition, inner = _asked(copy.condition, reader, context), copy.then_case
        assert isinstance(inner, Copy)
        return IfThenElse(condition, _named(inner, reader, (*context, condition)), None)
    return BufferStore(copy.buffer, _value(copy.value, reader, context), list(copy.indices))


def _value(value: Expr, reader: _Reader, context: Context) -> Expr:
    """A value, of which indices and conditions are replaced, but not what it is made of."""
    if (choice := choice_of(value)) is not None:
        condition = _asked(choice[0], reader, context)
        chosen = _value(choice[1], reader, (*context, condition))
        other = _value(choice[2], reader, (*context, tirx.Not(condition)))
        made = tirx.Select if isinstance(value, tirx.Select) else tirx.if_then_else
        return made(condition, chosen, other)
    if isinstance(value, TensorLoad):
        indices = [_index(index, reader, context, is_asked=False) for index in value.indices]
        return tirx.BufferLoad(value.source, [reader.place_in_page(each) for each in indices])
    return _rebuilt(value, lambda part: _value(part, reader, context))


def _asked(condition: Expr, reader: _Reader, context: Context) -> Expr:
    """A condition with each integer of memory replaced; an `and` stops where its first fails."""
    if isinstance(condition, tirx.And):
        first = _asked(condition.a, reader, context)
        return tirx.And(first, _asked(condition.b, reader, (*context, first)))
    if isinstance(condition, tirx.Or):
        first = _asked(condition.a, reader, context)
        return tirx.Or(first, _asked(condition.b, reader, (*context, tirx.Not(first))))
    return reader.analyzer.simplify(_index(condition, reader, context, is_asked=True))


def _index(index: Expr, reader: _Reader, context: Context, is_asked: bool) -> Expr:
    """An index, of which each integer of memory is replaced, and what is made of it alone."""
    if isinstance(index, TensorLoad) or (isinstance(index, _OF_ITS_OWN) and _is_of_memory(index)):
        return reader.read(index, context, is_asked)
    return _rebuilt(index, lambda part: _index(part, reader, context, is_asked))


def _is_of_memory(index: Expr) -> bool:
    """Whether it is made of integers of memory and constants."""
    if isinstance(index, TensorLoad | tirx.IntImm):
        return True
    if isinstance(index, tirx.Cast):
        return _is_of_memory(index.value)
    return is_of_two(index) and _is_of_memory(index.a) and _is_of_memory(index.b)


def _rebuilt(node: Expr, part: Callable[[Expr], Expr]) -> Expr:
    """A node of other parts; what is of no known kind stays as it is."""
    if not loads_of(node):
        return node
    if is_of_two(node):
        return type(node)(part(node.a), part(node.b))
    if isinstance(node, tirx.Cast):
        return tirx.Cast(str(node.ty.dtype), part(node.value))
    if isinstance(node, tirx.Not):
        return tirx.Not(part(node.a))
    if isinstance(node, Call) and choice_of(node) is None:
        return Call(node.op, [part(each) for each in node.args], attrs=node.attrs, ret_ty=node.ty)
    return node


def _bound(value: Expr, analyzer: Analyzer) -> tuple[int, int]:
    """The least and the most that a value may be, of which TVM knows nothing behind a condition."""
    if (choice := choice_of(value)) is not None:
        both = [_bound(each, analyzer) for each in choice[1:]]
        return min(least for least, _ in both), max(most for _, most in both)
    bound = analyzer.const_int_bound(value)
    return int(bound.min_value), int(bound.max_value)


def _ends(variable: Var, elements: Sequence[Element], analyzer: Analyzer) -> tuple[int, int] | None:
    """The least and the most that a variable is where any element exists that someone wants; None
    if a place does not tell. Of elements that nobody ever wants that is 0."""
    using = [each for each in elements if depends(each.value, variable)]
    if not using:
        return None
    ends: list[tuple[int, int]] = []
    for each in using:
        conditions = (*each.conditions, *each.guards)
        if any(constant(condition) == 0 for condition in conditions):
            continue  # past the end of a K that is shorter than a tile, for one
        for load in loads_of(each.value):
            place, length = load.indices[0], constant(load.source.shape[0])
            if not depends(place, variable):
                continue
            parts = linear_in(place, variable)
            times = None if parts is None else constant(parts[0])
            if parts is None or times is None or times <= 0:
                return None
            low = int(analyzer.const_int_bound(parts[1]).min_value)
            high = largest(parts[1], conditions, analyzer)
            if high is None:
                return None
            most = _LARGEST
            if length is not None and abs(low) < _LARGEST:
                most = (length - 1 - low) // times
            ends.append((-(high // times), most))
    return (min(least for least, _ in ends), max(most for _, most in ends)) if ends else (0, 0)


def _differs(value: Expr, threads: Mapping[str, int]) -> bool:
    """Whether threads may have values of their own."""
    return any(v.name in threads for v in variables_of(value))


def _read(value: Expr, threads: Mapping[str, int]) -> Expr:
    """A value, in a scalar register where it is the same for all threads."""
    return (
        value
        if _differs(value, threads) or str(value.ty.dtype) != "int32"
        else device.uniform(value)
    )
