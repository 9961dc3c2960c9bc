"""Indices that copies read from memory: those that stay the same in the loop are read ahead of it.

The rows of a product of experts are an example: `x[rows[i], k] * w[expert[b], j, k]`. What is read
once has a name then, and a place with that name in it is linear in the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import tvm_ffi
from tvm import ir, tirx
from tvm.ir import Call, TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import Bind, BufferStore, Expr, For, IfThenElse, PrimFunc, Var

from mfmadsl.passes.main_loop.analysis.unrolled import store_of
from mfmadsl.passes.main_loop.moves.element import Element
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.expression import (
    OfTwo,
    bits_of,
    choice_of,
    constant,
    depends,
    loads_of,
    scope_of,
    variables_of,
)
from mfmadsl.passes.tir.linear import largest, linear_in

Copy = BufferStore | IfThenElse
Context = tuple[Expr, ...]
"""Conditions under which an expression is evaluated."""

_LARGEST = (1 << 31) - 2  # that an index may be


@dataclass(frozen=True)
class Gathered:
    """Indices that are read ahead of a loop: the variable of each, and what is read."""

    values: Mapping[Var, Expr] = field(default_factory=dict)

    def binds(self, threads: Mapping[str, int]) -> list[Bind]:
        """The statements that read them; `threads` are the thread indices."""
        return [
            Bind(v, value if any(lane.name in threads for lane in variables_of(value)) else _uniform(value))
            for v, value in self.values.items()
        ]

    def ranges(self, elements: Sequence[Element], analyzer: Analyzer) -> dict[Var, ir.Range]:
        """What they may be where all places that they lead to exist, if those tell."""
        found = {v: _range(v, elements, analyzer) for v in self.values}
        return {v: span for v, span in found.items() if span is not None}


def gathered_ahead(
    copies: Sequence[Copy], loop: For, function: PrimFunc, analyzer: Analyzer
) -> tuple[list[Copy], Gathered]:
    """Copies with a variable for each index that is read from memory and stays the same.

    Where the loop's own condition guards such a read, it has to lie in its buffer without that.
    What the function writes is not read ahead. All others stay as they are.
    """
    if not any(map(_gathers, copies)):
        return list(copies), Gathered()
    reader = _Reader(loop.loop_var, analyzer, _written(function))
    named = [_named(each, reader) for each in copies]
    return named, Gathered({found.variable: found.value for found in reader.found})


def _gathers(copy: Copy) -> bool:
    """Whether an index or a condition of a copy reads memory."""
    store = store_of(copy)
    asked = _asked_in(store.value)
    while isinstance(copy, IfThenElse):
        asked.append(copy.condition)
        copy = copy.then_case
    return any(map(loads_of, (*asked, *(i for load in loads_of(store) for i in load.indices))))


def _asked_in(value: Expr) -> list[Expr]:
    """The conditions in a value."""
    found: list[Expr] = []

    def choice(node: Expr) -> None:
        if (parts := choice_of(node)) is not None:
            found.append(parts[0])

    tvm_ffi.structural_walk(value, [(Call, choice), (tirx.Select, choice)])
    return found


def _written(function: PrimFunc) -> list[Expr]:
    """The data of all arrays that the function writes."""
    stores: list[BufferStore] = []
    tvm_ffi.structural_walk(function.body, (BufferStore, stores.append))
    return [store.buffer.data for store in stores if scope_of(store.buffer) == "global"]


@dataclass(frozen=True)
class _Found:
    load: TensorLoad
    variable: Var
    value: Expr


@dataclass
class _Reader:
    """What has been read so far, and what may be."""

    iteration: Var
    analyzer: Analyzer
    written: Sequence[Expr]
    found: list[_Found] = field(default_factory=list)

    def read(self, load: TensorLoad, context: Context) -> Expr:
        """A variable for what is loaded, or the load where it cannot be one."""
        if not self._stays(load):
            return load
        value: Expr = load
        if context and not self._exists(load):
            if any(depends(c, self.iteration) or loads_of(c) for c in context):
                return load
            for condition in reversed(context):
                value = tirx.if_then_else(condition, value, tirx.const(0, str(load.ty.dtype)))
        for known in self.found:
            if known.load.source.same_as(load.source) and self._is_same(known, load, value):
                return known.variable
        variable = Var(f"{load.source.name}.{len(self.found)}", str(load.ty.dtype))
        self.found.append(_Found(load, variable, value))
        return variable

    def _stays(self, load: TensorLoad) -> bool:
        """Whether it is one integer, the same in all iterations."""
        dtype = str(load.ty.dtype)
        if not dtype.startswith(("int", "uint")) or "x" in dtype or bits_of(dtype) % 8:
            return False
        sources = [load, *(inner for index in load.indices for inner in loads_of(index))]
        return not depends(load, self.iteration) and all(
            scope_of(each.source) == "global"
            and not any(each.source.data.same_as(data) for data in self.written)
            for each in sources
        )

    def _exists(self, load: TensorLoad) -> bool:
        """Whether it lies in its buffer, whatever conditions hold."""
        if any(loads_of(index) for index in load.indices):
            return False
        return all(
            self.analyzer.can_prove(index >= 0) and self.analyzer.can_prove(index < extent)
            for index, extent in zip(load.indices, load.source.shape, strict=True)
        )

    def _is_same(self, known: _Found, load: TensorLoad, value: Expr) -> bool:
        if isinstance(known.value, TensorLoad) != isinstance(value, TensorLoad):
            return False
        if not isinstance(value, TensorLoad) or loads_of(load.indices[0]):
            return str(known.value) == str(value)
        return all(
            constant(self.analyzer.simplify(a - b)) == 0
            for a, b in zip(known.load.indices, load.indices, strict=True)
        )


def _named(copy: Copy, reader: _Reader, context: Context = ()) -> Copy:
    """A copy with what its indices and conditions read replaced."""
    if isinstance(copy, IfThenElse):
        condition = _asked(copy.condition, reader, context)
        return IfThenElse(condition, _named(copy.then_case, reader, (*context, condition)), None)
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
        indices = [_index(index, reader, context) for index in value.indices]
        return tirx.BufferLoad(value.source, indices)
    return _rebuilt(value, lambda part: _value(part, reader, context))


def _asked(condition: Expr, reader: _Reader, context: Context) -> Expr:
    """A condition with each integer of memory replaced; an `and` stops where its first fails."""
    if isinstance(condition, tirx.And):
        first = _asked(condition.a, reader, context)
        return tirx.And(first, _asked(condition.b, reader, (*context, first)))
    if isinstance(condition, tirx.Or):
        first = _asked(condition.a, reader, context)
        return tirx.Or(first, _asked(condition.b, reader, (*context, tirx.Not(first))))
    return reader.analyzer.simplify(_index(condition, reader, context))


def _index(index: Expr, reader: _Reader, context: Context) -> Expr:
    """An index, of which each integer of memory is replaced."""
    if isinstance(index, TensorLoad):
        return reader.read(index, context)
    return _rebuilt(index, lambda part: _index(part, reader, context))


def _rebuilt(node: Expr, part: Callable[[Expr], Expr]) -> Expr:
    """A node of other parts; what is of no known kind stays as it is."""
    if not loads_of(node):
        return node
    if isinstance(node, OfTwo):
        return type(node)(part(node.a), part(node.b))
    if isinstance(node, tirx.Cast):
        return tirx.Cast(str(node.ty.dtype), part(node.value))
    if isinstance(node, tirx.Not):
        return tirx.Not(part(node.a))
    if isinstance(node, Call) and choice_of(node) is None:
        return Call(node.op, [part(each) for each in node.args], attrs=node.attrs, ret_ty=node.ty)
    return node


def _range(variable: Var, elements: Sequence[Element], analyzer: Analyzer) -> ir.Range | None:
    """What a variable may be where each place that it stands in exists; None if no place tells.

    Where a condition asks for the variable, it may be anything.
    """
    least, most = -_LARGEST, _LARGEST
    for each in elements:
        conditions = (*each.conditions, *each.guards)
        if any(depends(asked, variable) for asked in (*conditions, *_asked_in(each.value))):
            return None
        for load in loads_of(each.value):
            parts = linear_in(load.indices[0], variable)
            times = None if parts is None else constant(parts[0])
            if parts is None or times is None or times <= 0:
                continue
            low = int(analyzer.const_int_bound(parts[1]).min_value)
            high, length = largest(parts[1], conditions, analyzer), constant(load.source.shape[0])
            if length is not None and abs(low) < _LARGEST:
                most = min(most, (length - 1 - low) // times)
            if high is not None:
                least = max(least, -(high // times))
    if least == -_LARGEST or most < least:
        return None
    dtype = str(variable.ty.dtype)
    return ir.Range(tirx.const(least, dtype), tirx.const(most + 1, dtype))


def _uniform(value: Expr) -> Expr:
    """A value that is the same for all threads, in a scalar register."""
    return device.uniform(value) if str(value.ty.dtype) == "int32" else value
