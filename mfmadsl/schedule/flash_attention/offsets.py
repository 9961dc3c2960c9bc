"""Where keys of a batch begin, as memory says: read once, and not for each of them."""

from __future__ import annotations

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
    axes = found.axes
    inner = [axes.row.var, axes.key.var, axes.depth.var, axes.column.var]
    offsets: list[Offset] = []
    for load in (load for each in (found.k, found.v) for load in loads_of(each)):
        if _has_conditions(found.k) or _has_conditions(found.v):
            break
        for index, extent in zip(load.indices, load.source.shape, strict=True):
            read, rest = _parts(index)
            if read is None or any(depends(read, variable) for variable in inner):
                continue
            if rest is None or _counts(rest, axes.key.var):
                ends = extent if rest is not None and rest.same_as(axes.key.var) else None
                known = next((each for each in offsets if same(read, each.load)), None)
                if known is None:
                    name = f"{read.source.name}_{len(offsets)}"
                    known = Offset(tirx.Var(name, str(read.ty.dtype)), read, ())
                    offsets.append(known)
                if ends is not None:
                    place = offsets.index(known)
                    offsets[place] = replace(known, ends=(*known.ends, ends))
    if not offsets:
        return found

    def moved(load: TensorLoad) -> TensorLoad:
        return tirx.BufferLoad(load.source, [_moved(each, offsets) for each in load.indices])

    elements = found.q, found.k, found.v, found.score
    q, k, v, score = (tvm_ffi.structural_map(each, (TensorLoad, moved)) for each in elements)
    return replace(found, q=q, k=k, v=v, score=score, offsets=tuple(offsets))


def _has_conditions(element: Expr) -> bool:
    return any(name_of(call) == "if_then_else" for call in calls_of(element))


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
