"""The elements that a thread copies into the LDS, one by one, and which lie together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeVar

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import Buffer, BufferStore, Expr, IfThenElse, Stmt

from mfmadsl.passes.tir.error import NotUnderstoodError
from mfmadsl.passes.tir.expression import (
    aligned,
    bits_of,
    choice_of,
    conjuncts_of,
    constant,
    distance,
    is_zero,
    loads_of,
    name_of,
    scope_of,
)
from mfmadsl.passes.tir.linear import without_remainders
from mfmadsl.passes.tir.walk import mapped

Item = TypeVar("Item")

WIDEST = 16
"""Bytes of an access, at most."""


@dataclass(frozen=True)
class Element:
    """`buffer[place] = value` where all conditions hold, and 0 where not.

    A plain copy's value is one element of global memory. `edges` are the outermost conditions, and
    `inner` those within them. A thread for which a guard does not hold stores nothing at all.
    """

    buffer: Buffer
    place: Expr
    value: Expr
    edges: tuple[Expr, ...]
    inner: tuple[Expr, ...] = ()
    guards: tuple[Expr, ...] = ()

    @property
    def conditions(self) -> tuple[Expr, ...]:
        """All conditions under which it is wanted."""
        return self.edges + self.inner

    @property
    def is_plain(self) -> bool:
        """Whether the bits are copied as they are."""
        return isinstance(self.value, TensorLoad)


@dataclass(frozen=True)
class MemorySource:
    """One element of global memory that some elements are made of, and when it is wanted.

    Where an edge's condition fails, whatever is read may do if the loop says so.
    """

    buffer: Buffer
    place: Expr
    edges: tuple[Expr, ...]
    inner: tuple[Expr, ...] = ()

    @property
    def conditions(self) -> tuple[Expr, ...]:
        """All conditions under which it is wanted."""
        return self.edges + self.inner

    def is_wanted_as(self, other: MemorySource) -> bool:
        """Whether the conditions of both are written alike."""
        pairs = (self.edges, other.edges), (self.inner, other.inner)
        return all(
            len(own) == len(others) and all(map(tvm_ffi.structural_equal, own, others))
            for own, others in pairs
        )

    @property
    def size(self) -> int:
        """Bytes of it."""
        return bits_of(self.buffer.dtype) // 8


def element(statement: BufferStore | IfThenElse) -> Element:
    """What a store to the LDS, of one element, says; guarded, if it stands in a branch."""
    guards: tuple[Expr, ...] = ()
    store: Stmt = statement
    while isinstance(store, IfThenElse):
        guards += tuple(c for c in conjuncts_of(store.condition) if constant(c) != 1)
        store = store.then_case
    assert isinstance(store, BufferStore)
    for said in (*guards, *store.indices):
        if any(scope_of(load.source) != "global" for load in loads_of(said)):
            raise NotUnderstoodError(f"`{said}` reads registers or the LDS, which a copy must not")
    value, conditions = _unwrapped(store.value)
    inner: tuple[Expr, ...] = ()
    while (unwrapped := _unwrapped(value))[1]:
        value, more = unwrapped
        inner += more
    value = _as_it_lies(value)
    for load in loads_of(value):
        if scope_of(load.source) != "global":
            raise NotUnderstoodError(f"`{load}` of registers is copied into the LDS")
        if len(load.indices) != 1 or bits_of(load.source.dtype) % 8:
            raise NotUnderstoodError(f"`{load}` is no element of whole bytes of a flat buffer")
        if loads_of(load.indices[0]):
            raise NotUnderstoodError(f"where `{load}` lies is read from memory")
    return Element(store.buffer, store.indices[0], value, conditions, inner, guards)


def _as_it_lies(value: Expr) -> Expr:
    """The element of memory, where all that is said of it is another type of as many bits."""
    if isinstance(value, Call) and name_of(value) == "reinterpret":
        (inner,) = value.args
        if isinstance(inner, TensorLoad) and bits_of(inner.ty.dtype) == bits_of(value.ty.dtype):
            return inner
    return value


def _unwrapped(value: Expr) -> tuple[Expr, tuple[Expr, ...]]:
    """A value, and the conditions but for which it is 0; those that read memory stay in it."""
    choice = choice_of(value)
    if choice is None or not is_zero(choice[2]):
        return value, ()
    condition, chosen, other = choice
    conditions = conjuncts_of(condition)
    reading = [c for c in conditions if loads_of(c)]
    if reading:
        chosen = tirx.Select(reduce(tirx.And, reading), chosen, other)
    return chosen, tuple(c for c in conditions if not loads_of(c))


def with_common_places(elements: Sequence[Element], analyzer: Analyzer) -> list[Element]:
    """The elements, those that are computed with places of memory that are the same written alike.

    Such as a scale that several of them share: what is fetched is told apart by how it is written.
    `analyzer` knows the ranges of threads and of the loop.
    """
    plain = Analyzer()
    known: dict[int, list[Expr]] = {}

    def common(load: TensorLoad) -> Expr:
        place = without_remainders(load.indices[0], analyzer)
        others = known.setdefault(load.source.__chandle__(), [])
        for other in others:
            if distance(other, place, plain) == 0:
                return tirx.BufferLoad(load.source, [other])
        others.append(place)
        return tirx.BufferLoad(load.source, [place])

    return [
        each if each.is_plain else replace(each, value=with_sources(each.value, common))
        for each in elements
    ]


def source_of(plain: Element) -> MemorySource:
    """The element of global memory that a plain copy takes."""
    (load,) = loads_of(plain.value)
    return MemorySource(load.source, load.indices[0], plain.edges, (*plain.inner, *plain.guards))


def sources(elements: Iterable[Element]) -> list[MemorySource]:
    """All elements of memory that are needed, each once."""
    found: dict[tuple[int, tvm_ffi.StructuralKey], list[MemorySource]] = {}
    for each in elements:
        for load in loads_of(each.value):
            place = load.indices[0]
            source = MemorySource(load.source, place, each.edges, (*each.inner, *each.guards))
            key = load.source.__chandle__(), tvm_ffi.StructuralKey(place)
            wanted = found.setdefault(key, [])
            if not any(source.is_wanted_as(other) for other in wanted):
                wanted.append(source)
    return [_where_any(wanted) for wanted in found.values()]


def _where_any(wanted: Sequence[MemorySource]) -> MemorySource:
    """One element for several: fetched where any of them wants it, and else it may not exist."""
    first = wanted[0]
    if len(wanted) == 1:
        return first
    if not all(source.conditions for source in wanted):
        return MemorySource(first.buffer, first.place, ())
    return MemorySource(
        first.buffer, first.place, (), (reduce(tirx.Or, (_all_of(source) for source in wanted)),)
    )


def _all_of(source: MemorySource) -> Expr:
    return reduce(tirx.And, source.conditions)


def with_sources(value: Expr, replace: Callable[[TensorLoad], Expr]) -> Expr:
    """A value with each element of global memory replaced."""
    return mapped(value, (TensorLoad, replace))


def runs(
    items: Sequence[Item], place: Callable[[Item], Expr], buffer: Callable[[Item], Buffer],
    most: Callable[[Item], int],
) -> list[list[Item]]:  # fmt: skip
    """Items whose places are neighbours in one buffer, at most so many together."""
    analyzer = Analyzer()
    bases: list[tuple[Buffer, Expr, dict[int, Item]]] = []
    for item in items:
        for of, base, members in bases:
            if not of.same_as(buffer(item)):
                continue
            apart = distance(place(item), base, analyzer)
            if apart is not None:
                if apart in members:
                    raise NotUnderstoodError(f"two elements go to one place of `{of.name}`")
                members[apart] = item
                break
        else:
            bases.append((buffer(item), place(item), {0: item}))
    found: list[list[Item]] = []
    for _, _, members in bases:
        last: int | None = None
        for apart in sorted(members):
            item = members[apart]
            if last is None or apart != last + 1 or len(found[-1]) == most(item):
                found.append([])
            found[-1].append(item)
            last = apart
    return [piece for run in found for piece in _powers_of_two(run)]


def neighbours(elements: Sequence[Element]) -> list[list[Element]]:
    """Runs in the LDS, aligned to their lengths, of elements with the same guards."""
    groups: dict[tuple[tvm_ffi.StructuralKey, ...], list[Element]] = {}
    for each in elements:
        groups.setdefault(tuple(map(tvm_ffi.StructuralKey, each.guards)), []).append(each)
    return [
        piece
        for group in groups.values()
        for run in runs(group, lambda e: e.place, lambda e: e.buffer,
                        lambda e: WIDEST * 8 // bits_of(e.buffer.dtype))
        for piece in aligned(run, lambda e: e.place)
    ]  # fmt: skip


def _powers_of_two(run: list[Item]) -> Iterable[list[Item]]:
    while run:
        length = 1 << (len(run).bit_length() - 1)
        yield run[:length]
        run = run[length:]
