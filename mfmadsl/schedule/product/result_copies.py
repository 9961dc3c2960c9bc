"""Parts of a product's result that a function also copies into other arguments.

A key-value cache is an example: a layer's keys and values are parts of one product's result, and
are kept behind those of earlier tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.s_tir import SBlockRealize
from tvm.sym import Analyzer
from tvm.tirx import Buffer, BufferStore, Expr, IterVar, PrimFunc, Stmt, Var

from mfmadsl.passes.tir.block import in_sequence, statements, with_parts, with_root
from mfmadsl.passes.tir.expression import constant, step_of, substitute
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.added_nest import element_wise
from mfmadsl.schedule.product.dataflow import accesses, holds
from mfmadsl.schedule.product.nest import Nest, check_plain, is_sum, loads, nests, writes_apart


@dataclass(frozen=True)
class CopiedAxis:
    """An axis of a copy: neighbours along it lie `stride` elements of the result apart."""

    variable: Var
    extent: Expr
    stride: int


@dataclass(frozen=True)
class ResultCopy:
    """Elements of the result from `first` on, counted row by row, and where in `target` they go.

    The axes stand in the order of their strides, the longest first; what one of them spans is no
    longer than the stride of the one before.
    """

    target: Buffer
    place: tuple[Expr, ...]
    first: int
    axes: tuple[CopiedAxis, ...]


@dataclass(frozen=True)
class ResultCopies:
    """A function without its copies and their targets, and what it copied of its `result`."""

    function: PrimFunc
    workload: PrimFunc
    result: Buffer
    copies: tuple[ResultCopy, ...]


def result_copies(function: PrimFunc) -> ResultCopies | None:
    """The copies that a function ends with; None where there is none, or one that cannot be made
    where the result is stored."""
    every = nests(function)
    if not isinstance(function.body, SBlockRealize) or len(every) != len(statements(function)):
        return None
    copies: list[Nest] = []
    while every and _is_copy(every[-1], function):
        copies.append(every.pop())
    results = [load.source for nest in copies for load in loads(nest.store.value)]
    if not every or not results or not all(each.same_as(results[0]) for each in results):
        return None
    result, targets = results[0], [nest.store.buffer for nest in copies]
    if any(holds(targets[:n], each) for n, each in enumerate(targets)):  # which copy would be last?
        return None
    rest = with_root(
        function,
        with_parts(function.body.block, body=in_sequence([nest.statement for nest in every])),
    )
    used = [buffer for each in accesses(rest) for buffer in (*each.reads, *each.writes)]
    written = [buffer for each in accesses(rest) for buffer in each.writes]
    read = [load.source for nest in copies for index in nest.store.indices for load in loads(index)]
    if not holds(written, result) or any(holds([*used, *read, result], each) for each in targets):
        return None
    found = [_copy(nest, result) for nest in reversed(copies)]
    made = tuple(each for each in found if each is not None)
    if len(made) != len(found):
        return None
    left = [each for each in function.params if not holds(targets, each)]
    workload = PrimFunc(left, rest.body, function.ret_type, attrs=function.attrs)
    return ResultCopies(function, workload, result, made)


def _is_copy(nest: Nest, function: PrimFunc) -> bool:
    """Whether a nest moves elements of one argument into another."""
    store = nest.block.body
    if is_sum(nest) or not isinstance(store, BufferStore):
        return False
    value = store.value
    if not isinstance(value, TensorLoad) or value.source.dtype != store.buffer.dtype:
        return False
    return all(holds(function.params, each) for each in (value.source, store.buffer))


def _copy(nest: Nest, result: Buffer) -> ResultCopy | None:
    """What a nest copies; None if an element of the result does not say where it goes to."""
    try:
        check_plain(nest)
    except ScheduleError:
        return None
    if not writes_apart(nest, nest.store):
        return None
    at_first = {
        axis.var: tirx.IntImm(str(axis.var.ty.dtype), 0)
        for axis in nest.block.iter_vars
        if constant(axis.dom.extent) == 1
    }
    place = flat_place(loads(nest.store.value)[0].indices, result.shape)
    if place is None:
        return None
    place = substitute(place, at_first)
    axes = _axes([each for each in nest.block.iter_vars if each.var not in at_first], place)
    if axes is None:
        return None
    spanned = sum((axis.variable * axis.stride for axis in axes), tirx.IntImm("int64", 0))
    first = constant(Analyzer().simplify(place - spanned))
    if first is None or first < 0:
        return None
    target = tuple(substitute(index, at_first) for index in nest.store.indices)
    return ResultCopy(nest.store.buffer, target, first, axes)


def _axes(axes: Sequence[IterVar], place: Expr) -> tuple[CopiedAxis, ...] | None:
    """The axes of a copy by their strides; None if these leave open which element is which."""
    found: list[CopiedAxis] = []
    for axis in axes:
        stride = step_of(place, axis.var)
        if stride is None or stride < 1:
            return None
        found.append(CopiedAxis(axis.var, axis.dom.extent, stride))
    found.sort(key=lambda axis: -axis.stride)
    for outer, inner in pairwise(found):
        extent = constant(inner.extent)
        if extent is None or inner.stride * extent > outer.stride:
            return None
    return tuple(found)


def flat_place(indices: Sequence[Expr], shape: Sequence[Expr]) -> Expr | None:
    """A place counted row by row, in 64 bits; None where the length of a row is not known."""
    lengths = [constant(extent) for extent in shape[1:]]
    if None in lengths:
        return None
    strides = [prod(each or 0 for each in lengths[n:]) for n in range(len(shape))]
    place: Expr = tirx.IntImm("int64", 0)
    for index, stride in zip(indices, strides, strict=True):
        place = place + index.astype("int64") * stride
    return place


def with_copies(function: PrimFunc, copying: PrimFunc, source: int) -> PrimFunc | None:
    """A function with copies of its result behind it, as another one makes them of that parameter.

    The result is the last parameter, and lies row by row as the other's parameter does, perhaps in
    other extents. The other's parameters but for that one come in before it. None where the other
    function does more than copy, or a copy of the result would not be read back as one.
    """
    *given, result = function.params
    own = copying.params[source]
    every = nests(copying)
    if not isinstance(function.body, SBlockRealize) or len(every) != len(statements(copying)):
        return None
    made: list[Stmt] = []
    for nest in every:
        found = _renamed_copies(nest, own, result)
        if found is None:
            return None
        made += found
    root = function.body.block
    body = with_root(
        function, with_parts(root, body=in_sequence([*statements(function), *made]))
    ).body
    targets = [each for n, each in enumerate(copying.params) if n != source]
    joined = PrimFunc([*given, *targets, result], body, function.ret_type, attrs=function.attrs)
    copies = result_copies(joined)
    is_whole = copies is not None and len(copies.copies) == len(made)
    return joined if is_whole and copies is not None and copies.result.same_as(result) else None


def _renamed_copies(nest: Nest, own: Buffer, result: Buffer) -> list[Stmt] | None:
    """Nests that copy from the result what one copies from `own`."""
    try:
        check_plain(nest)
    except ScheduleError:
        return None
    body = nest.block.body
    analyzer = Analyzer()
    for axis in nest.block.iter_vars:
        analyzer.bind(axis.var, axis.dom)
    made = []
    for number, store in enumerate(body.seq if isinstance(body, tirx.SeqStmt) else [body]):
        if not isinstance(store, BufferStore) or not isinstance(store.value, TensorLoad):
            return None
        if not store.value.source.same_as(own):
            return None
        place = flat_place(store.value.indices, own.shape)
        indices = None if place is None else _indices(place, result.shape, analyzer)
        if indices is None:
            return None
        value = tirx.BufferLoad(result, indices)
        name = f"{nest.name}_{number}"
        made.append(element_wise(name, nest.block.iter_vars, store.buffer, store.indices, value))
    return made


def _indices(place: Expr, shape: Sequence[Expr], analyzer: Analyzer) -> list[Expr] | None:
    """The indices of what is counted row by row; None where a row's length is not known."""
    indices: list[Expr] = []
    for extent in reversed(shape[1:]):
        length = constant(extent)
        if length is None:
            return None
        indices.insert(0, analyzer.simplify(tirx.floormod(place, length)))
        place = analyzer.simplify(tirx.floordiv(place, length))
    return [place, *indices]
