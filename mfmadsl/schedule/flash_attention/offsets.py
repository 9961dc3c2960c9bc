"""Where keys of a batch begin, as memory says: read once, and not for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import Expr, Var

from mfmadsl.passes.tir.expression import calls_of, constant, depends, loads_of, name_of
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.schedule.flash_attention.described import Attention, Axes, Offset
from mfmadsl.schedule.flash_attention.score import is_there
from mfmadsl.schedule.product.nest import same


def with_offsets(found: Attention) -> Attention:
    """The attention with variables in place of what its elements' places read for a batch.

    Starts are indices of K or V themselves, or what keys or their pages are counted from: the first
    key is there, so that the number is in the array. Of others it has to be known that they can be
    read. Those of what is there under a condition are read where they stand.
    """
    offsets: list[Offset] = []
    for read, end in _starts(found):
        n = next((n for n, each in enumerate(offsets) if same(read, each.load)), len(offsets))
        if n == len(offsets):
            variable = tirx.Var(f"{read.source.name}_{n}", str(read.ty.dtype))
            offsets.append(Offset(variable, read, ()))
        if end is not None and not any(same(end, each) for each in offsets[n].ends):
            offsets[n] = replace(offsets[n], ends=(*offsets[n].ends, end))
    for read in _others(found):
        if not any(same(read, each.load) for each in offsets):
            variable = tirx.Var(f"{read.source.name}_{len(offsets)}", str(read.ty.dtype))
            offsets.append(Offset(variable, read, (), is_start=False))
    if not offsets:
        return found

    def moved(load: TensorLoad) -> TensorLoad:
        return tirx.BufferLoad(load.source, [_moved(each, offsets) for each in load.indices])

    elements = found.q, found.k, found.v, found.score
    q, k, v, score = (mapped(each, (TensorLoad, moved)) for each in elements)
    return replace(found, q=q, k=k, v=v, score=score, offsets=tuple(offsets))


def _starts(found: Attention) -> Iterator[tuple[TensorLoad, Expr | None]]:
    """(a number that an index of K or V reads for a batch, where an axis ends along which keys are
    counted from there)."""
    for load in _elements(found):
        for index, extent in zip(load.indices, load.source.shape, strict=True):
            read, rest = _parts(index)
            if read is None or not _is_of_batch(read, found.axes):
                continue
            if rest is None or _counts(rest, found.axes.key.var):
                by_key = rest is not None and rest.same_as(found.axes.key.var)
                yield read, extent if by_key else None


def _others(found: Attention) -> Iterator[TensorLoad]:
    """The other numbers of a batch that indices read."""
    packed = [found.packed.batch] if found.packed is not None else []
    for load in _elements(found):
        for read in (each for index in load.indices for each in loads_of(index)):
            is_plain = not any(map(loads_of, read.indices))
            if is_plain and _is_of_batch(read, found.axes) and is_there(read, found.axes, *packed):
                yield read


def _elements(found: Attention) -> list[TensorLoad]:
    """What K and V read, if they do so under no condition."""
    calls = [call for each in (found.k, found.v) for call in calls_of(each)]
    if any(name_of(call) == "if_then_else" for call in calls):
        return []
    return [load for each in (found.k, found.v) for load in loads_of(each)]


def _is_of_batch(read: TensorLoad, axes: Axes) -> bool:
    """Whether it is the same for all queries and keys of a batch."""
    inner = (axes.row, axes.key, axes.depth, axes.column)
    return not any(depends(read, axis.var) for axis in inner)


def _parts(index: Expr) -> tuple[TensorLoad | None, Expr | None]:
    """(what an index reads of memory, what is added to that)."""
    sides = [(index.a, index.b), (index.b, index.a)] if isinstance(index, tirx.Add) else []
    for read, rest in ((index, None), *sides):
        number = read.value if isinstance(read, tirx.Cast) else read
        if isinstance(number, TensorLoad):
            return number, rest
    return None, None


def _counts(rest: Expr, key: Var) -> bool:
    """Whether it is a key's number, or that of its page."""
    if isinstance(rest, tirx.FloorDiv):
        by = constant(rest.b)
        return bool(rest.a.same_as(key)) and by is not None and by > 0
    return bool(rest.same_as(key))


def _moved(index: Expr, offsets: list[Offset]) -> Expr:
    def variable_of(load: TensorLoad) -> Expr:
        return next((each.variable for each in offsets if same(load, each.load)), load)

    return mapped(index, (TensorLoad, variable_of))
