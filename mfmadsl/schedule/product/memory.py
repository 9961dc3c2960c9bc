"""How an operand or a result lies in the memory of the argument that it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import tvm
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import Buffer, BufferStore, Expr, IterVar, PrimFunc, Var
from tvm.tirx.analysis import undefined_vars

from mfmadsl.passes.tir.expression import NotNumbersError, numbers
from mfmadsl.schedule.product.dataflow import written_for_cpu
from mfmadsl.schedule.product.nest import is_number, loads, nests, substitute

Extent: TypeAlias = int | Expr
"""A number, or an expression of TVM where it is known at run time only."""


@dataclass(frozen=True)
class Memory:
    """Where the elements of a matrix lie.

    Neighbours along `axis` ("i", "j" or "k") are neighbours in memory, `run` of them at a stretch:
    fewer than the axis has where several loops make it up that do not lie one after the other.
    `distance` is from one such line to the next, in elements: 0 if there is but one. None is what
    is not the same everywhere, or not known. An element has `size` bytes, or 0 where it lies
    nowhere. `computed` says that an element is made of what lies there, and `packed` how many
    neighbours along each axis are made of one place, such as the eight k of a word of nibbles.
    """

    axis: str | None
    distance: Extent | None
    run: Extent
    size: int
    computed: bool = False
    packed: Mapping[str, int] = field(default_factory=dict)

    def packed_along(self, axis: str) -> int:
        """How many neighbours along an axis are made of one place."""
        return self.packed.get(axis, 1)


_PACKED = (16, 8, 4, 2)  # elements of a place, the most first

UNKNOWN = Memory(None, None, 1, 0)


def memory(use: TensorLoad | BufferStore, axes: Mapping[str, Sequence[IterVar]]) -> Memory:
    """How the elements that a load or store goes to lie, along each of two axes of a product."""
    buffer = use.source if isinstance(use, TensorLoad) else use.buffer
    size = max(1, int(tvm.DataType(str(buffer.dtype)).bits) // 8)
    offset, packed = _unpacked(offset_of(buffer, use.indices), axes)
    variables = {axis.var for several in axes.values() for axis in several}
    steps = {kind: _step(offset, several, variables) for kind, several in axes.items()}
    for kind, (step, run) in reversed(steps.items()):
        if step == 1 and run != 1:
            (other,) = (found for name, found in steps.items() if name != kind)
            whole = prod_of(axis.dom.extent for axis in axes[kind])
            return Memory(kind, other[0], run if run != whole else whole, size, packed=packed)
    return replace(UNKNOWN, size=size)


def _unpacked(offset: Expr, axes: Mapping[str, Sequence[IterVar]]) -> tuple[Expr, dict[str, int]]:
    """A place with each axis counted in places, and how many neighbours share one, if several do.

    The axis is that of the last loop of a kind.
    """
    packed: dict[str, int] = {}
    for kind, several in axes.items():
        if not several:
            continue
        variable = several[-1].var
        number = _sharing(offset, variable)
        if number > 1:
            offset = Analyzer().simplify(substitute(offset, {variable: variable * number}))
            packed[kind] = number
    return offset, packed


def _sharing(offset: Expr, variable: Var) -> int:
    """How many neighbours along a loop share each place."""
    values: dict[str, npt.ArrayLike] = {v.name: 1 for v in undefined_vars(offset)}
    values[variable.name] = np.arange(2 * max(_PACKED))
    try:
        places = np.broadcast_to(numbers(offset, values), 2 * max(_PACKED))
    except NotNumbersError:
        return 1
    starts = np.flatnonzero(np.diff(places)) + 1
    return next((n for n in _PACKED if np.array_equal(starts, np.arange(n, len(places), n))), 1)


def _step(
    offset: Expr, axes: Sequence[IterVar], variables: set[Var]
) -> tuple[Extent | None, Extent]:
    """Elements from a place along the axes to the next, and how many places keep to that."""
    step: Extent | None = None
    run: Extent = 1
    for axis in reversed([axis for axis in axes if not is_number(axis.dom.extent, 1)]):
        here = _difference(offset, axis.var, variables)
        if step is None:
            step = here
            if here is None:
                return None, 1
        elif here is None or not _equal(here, step * run):
            return (step if step == 1 else None), run
        run = plain(run * axis.dom.extent)
    return (0 if step is None else step), run


def _difference(offset: Expr, variable: Var, variables: set[Var]) -> Extent | None:
    next_one = substitute(offset, {variable: variable + 1})
    difference = Analyzer().simplify(next_one - offset)
    if loads(difference) or not variables.isdisjoint(undefined_vars(difference)):
        return None
    return plain(difference)


def offset_of(buffer: Buffer, indices: Sequence[Expr]) -> Expr:
    """The number of an element in its argument, of which `check_compact` refuses other strides."""
    strides: list[Extent] = []
    extents: list[Extent] = [*buffer.shape[1:], 1]
    for extent in reversed(extents):
        strides.insert(0, extent * strides[0] if strides else extent)
    terms = (index * stride for index, stride in zip(indices, strides, strict=True))
    return sum(terms, tirx.const(0, "int32"))


def argument_load(function: PrimFunc, load: TensorLoad) -> TensorLoad | None:
    """The element of an argument that a load comes from, through blocks that compute it.

    Where such a block reads several, the one that depends on most axes is meant, and of several the
    largest. What a kernel of a CPU has written before lies as an argument does.
    """
    if any(load.source.same_as(parameter) for parameter in function.params):
        return load
    if written_for_cpu(function, load.source):
        return load
    if (computed := computed_load(function, load)) is None:
        return None
    value, places = computed
    found = [substitute(inner, places) for inner in loads(value)]
    return argument_load(function, max(found, key=_freedom)) if found else None


def computed_load(function: PrimFunc, load: TensorLoad) -> tuple[Expr, dict[Var, Expr]] | None:
    """What a block computes where a load reads it: its value, and what its variables are there.

    None where no block does so without a sum, or one at other places than its variables.
    """
    for nest in nests(function):
        if not isinstance(nest.block.body, tirx.BufferStore):
            continue
        store = nest.block.body
        if not store.buffer.same_as(load.source) or nest.block.init is not None:
            continue
        own = [index for index in store.indices if isinstance(index, tirx.Var)]
        if len(own) < len(store.indices):
            return None
        return store.value, dict(zip(own, load.indices, strict=True))
    return None


def _freedom(load: TensorLoad) -> tuple[int, int]:
    extents = [number(plain(extent)) or 0 for extent in load.source.shape]
    return len({v for index in load.indices for v in undefined_vars(index)}), prod(extents)


def final_store(function: PrimFunc, store: BufferStore) -> BufferStore | None:
    """The store to an argument that what a block stores ends in, at the places of that block.

    None where a block in between reads it at other than its own places.
    """
    for nest in nests(function):
        if not isinstance(nest.block.body, tirx.BufferStore):
            continue
        after = nest.block.body
        reads = [load for load in loads(after.value) if load.source.same_as(store.buffer)]
        if not reads or after.buffer.same_as(store.buffer) or nest.block.init is not None:
            continue
        places = {}
        for own, index in zip(reads[0].indices, store.indices, strict=True):
            if isinstance(own, tirx.Var):
                places[own] = index
        indices = [substitute(index, places) for index in after.indices]
        return final_store(function, tirx.BufferStore(after.buffer, after.value, indices))
    return store if any(store.buffer.same_as(p) for p in function.params) else None


def stored_memory(function: PrimFunc, store: BufferStore, i: IterVar, j: IterVar) -> Memory:
    """How the argument lies that a store at the places i, j ends in."""
    end = final_store(function, store)
    return UNKNOWN if end is None else memory(end, {"i": [i], "j": [j]})


def prod_of(extents: Iterable[Expr | int]) -> Extent:
    """The product of extents, a number where all are known."""
    return plain(prod(extents))


def number(extent: Extent) -> int | None:
    """The number, or None where it is known at run time only."""
    return extent if isinstance(extent, int) else None


def plain(extent: Expr | int) -> Extent:
    """The number, where it is one."""
    return int(extent) if isinstance(extent, int | tirx.IntImm) else extent


def _equal(a: Extent, b: Extent) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    return bool(Analyzer().can_prove_equal(a, b))
