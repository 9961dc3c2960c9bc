"""Where keys of a batch begin, as memory says: read once, and not for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import Expr, Var

from mfmadsl.passes.tir.expression import calls_of, constant, depends, loads_of, name_of
from mfmadsl.schedule.flash_attention.described import Attention, Offset
from mfmadsl.schedule.product.nest import same


def with_offsets(found: Attention) -> Attention:
    """The attention with variables in place of what its elements' places read for a batch.

    Only of an index of K or V that is such a number itself, or behind it by a key or by its page:
    the first key is there, so that the number is in the array. Others may be any, as those of what
    is there under a condition, and are read where they stand.
    """
    offsets: list[Offset] = []
    for read, end in _reads(found):
        n = next((n for n, each in enumerate(offsets) if same(read, each.load)), len(offsets))
        if n == len(offsets):
            variable = tirx.Var(f"{read.source.name}_{n}", str(read.ty.dtype))
            offsets.append(Offset(variable, read, ()))
        if end is not None and not any(same(end, each) for each in offsets[n].ends):
            offsets[n] = replace(offsets[n], ends=(*offsets[n].ends, end))
    if not offsets:
        return found

    def moved(load: TensorLoad) -> TensorLoad:
        return tirx.BufferLoad(load.source, [_moved(each, offsets) for each in load.indices])

    elements = found.q, found.k, found.v, found.score
    q, k, v, score = (tvm_ffi.structural_map(each, (TensorLoad, moved)) for each in elements)
    return replace(found, q=q, k=k, v=v, score=score, offsets=tuple(offsets))


def _reads(found: Attention) -> Iterator[tuple[TensorLoad, Expr | None]]:
    """(a number that an index of K or V reads for a batch, where an axis ends along which keys are
    counted from there)."""
    axes, elements = found.axes, (found.k, found.v)
    inner = [axes.row.var, axes.key.var, axes.depth.var, axes.column.var]
    calls = [call for each in elements for call in calls_of(each)]
    if any(name_of(call) == "if_then_else" for call in calls):
        return
    for load in (load for each in elements for load in loads_of(each)):
        for index, extent in zip(load.indices, load.source.shape, strict=True):
            read, rest = _parts(index)
            if read is None or any(depends(read, variable) for variable in inner):
                continue
            if rest is None or _counts(rest, axes.key.var):
                by_key = rest is not None and rest.same_as(axes.key.var)
                yield read, extent if by_key else None


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
    read, _ = _parts(index)

    def variable_of(load: TensorLoad) -> Expr:
        return next((each.variable for each in offsets if same(load, each.load)), load)

    return index if read is None else tvm_ffi.structural_map(index, (TensorLoad, variable_of))
