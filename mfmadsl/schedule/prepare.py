"""What primitives of a schedule cannot change in a product, changed in the function before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import s_tir, tirx
from tvm.ir import TensorLoad
from tvm.s_tir.analysis import get_sblock_access_region
from tvm.tirx import IterVar, PrimFunc

from mfmadsl.schedule.memory import final_store, memory
from mfmadsl.schedule.nest import Nest, block_names, buffers, same, statements, substitute
from mfmadsl.schedule.sum_of_products import (
    SumOfProducts,
    product_nest,
    sum_of_products,
    uncast,
    uses,
)

WIDE = {"float16": "float32", "bfloat16": "float32"}
"""What sums of a narrow type are kept in: no instruction sums in it, and the result is closer."""


def prepared(function: PrimFunc, block: str | None = None) -> PrimFunc:
    """The same function, with its product C = C + A * B as instructions have it.

    The second factor is the one whose rows lie together in the result. Each factor has a buffer of
    its own: of A times A transposed, one is copied by a block before the product, which can be
    inlined. A sum in float16 or bfloat16 becomes one in float32, rounded by a block after the
    product. `block` names the product where the function has several sums.

    Raises ScheduleError, with the name of the block, if it is no product.
    """
    product = sum_of_products(product_nest(function, block))
    nest, store = product.nest, product.store
    taken = block_names(function)
    before, after, allocated = [], [], []

    total, places = store.buffer, list(store.indices)
    sum_type = WIDE.get(product.sum_type, product.sum_type)
    if sum_type != product.sum_type:
        spatial = [axis for axis in nest.block.iter_vars if uses(store, axis.var)]
        total = _buffer(f"{store.buffer.name}_wide", spatial, sum_type)
        places = [axis.var for axis in spatial]
        allocated.append(total)
        rounded = tirx.BufferLoad(total, places).astype(product.sum_type)
        name = _unique(f"{nest.name}_rounded", taken)
        after.append(_element_wise(name, spatial, store.buffer, store.indices, rounded))

    factors: list[Any] = []
    for factor in _in_order(function, product):
        # A cast that rounds to the narrow type has to stay when the sum is in a wide one.
        value = uncast(factor) if sum_type == product.sum_type else factor
        first = isinstance(value, TensorLoad) and not any(
            value.source.same_as(buffer) for buffer in buffers(factors)
        )
        if not first:
            used = [axis for axis in nest.block.iter_vars if uses(uncast(factor), axis.var)]
            name = _unique(f"{uncast(factor).source.name}_copy", taken)
            copy = _buffer(name, used, str(value.ty.dtype))
            allocated.append(copy)
            places_of_copy = [axis.var for axis in used]
            before.append(_element_wise(name, used, copy, places_of_copy, value))
            value = tirx.BufferLoad(copy, places_of_copy)
        factors.append(value if str(value.ty.dtype) == sum_type else value.astype(sum_type))

    element = tirx.BufferLoad(total, places)
    body = tirx.BufferStore(total, element + factors[0] * factors[1], places)
    if same(body, nest.block.body):
        return function
    init = tirx.BufferStore(total, tirx.const(0, sum_type), places)
    changed = _block(nest.name, list(nest.block.iter_vars), body, init, nest.block.annotations)
    middle = _looped(nest.loops, s_tir.SBlockRealize(nest.realize.iter_values, True, changed))
    return _replaced(function, nest, [*before, middle, *after], allocated)


def _in_order(function: PrimFunc, product: SumOfProducts) -> list[Any]:
    """The factors, last the one whose axis is the one along which the result lies together."""
    factors = list(product.factors)
    end = final_store(function, product.store)
    axes = {kind: product.axes(kind) for kind in "ij"}
    if end is not None and memory(end, axes).axis == "i":
        factors.reverse()
    return factors


def _buffer(name: str, axes: Sequence[Any], dtype: str) -> Any:
    return tirx.decl_buffer([axis.dom.extent for axis in axes] or [1], dtype, name)


def _element_wise(
    name: str, axes: Sequence[Any], buffer: Any, indices: Sequence[Any], value: Any
) -> Any:
    """A nest over the axes that stores a value at its place."""
    loops, own = [], []
    for axis in axes:
        kind = axis.dom.extent.ty
        loops.append(tirx.Var(axis.var.name, kind))
        own.append(IterVar(axis.dom, tirx.Var(f"v_{axis.var.name}", kind), IterVar.DataPar))
    renamed = {axis.var: new.var for axis, new in zip(axes, own, strict=True)}
    store = substitute(tirx.BufferStore(buffer, value, list(indices)), renamed)
    statement: Any = s_tir.SBlockRealize(loops, True, _block(name, own, store, None, {}))
    for loop, axis in zip(reversed(loops), reversed(axes), strict=True):
        statement = tirx.For(loop, 0, axis.dom.extent, tirx.ForKind.SERIAL, statement)
    return statement


def _block(name: str, axes: list[Any], store: Any, init: Any, annotations: Any) -> Any:
    """A block that accesses what its statements do."""
    known = {buffer: buffer for buffer in (store.buffer, *buffers([store]))}
    bare = s_tir.SBlock(axes, [], [], name, store, init, annotations=annotations)
    reads, writes = get_sblock_access_region(bare, known)[:2]
    return s_tir.SBlock(axes, reads, writes, name, store, init, annotations=annotations)


def _looped(loops: Sequence[Any], inner: Any) -> Any:
    for loop in reversed(loops):
        inner = tirx.For(
            loop.loop_var, loop.min, loop.extent, loop.kind, inner, loop.thread_binding,
            loop.annotations,
        )  # fmt: skip
    return inner


def _replaced(
    function: PrimFunc, nest: Nest, instead: Sequence[Any], allocated: Sequence[Any]
) -> PrimFunc:
    """The function with other statements in place of a nest."""
    new: list[Any] = []
    for statement in statements(function):
        found = statement.same_as(nest.statement)
        new += instead if found else [statement]
    root = function.body.block
    body = new[0] if len(new) == 1 else tirx.SeqStmt(new)
    block = s_tir.SBlock(
        [], root.reads, root.writes, root.name_hint, body, None,
        [*root.alloc_buffers, *allocated], root.match_buffers, root.annotations,
    )  # fmt: skip
    return function.with_body(s_tir.SBlockRealize([], True, block))


def _unique(name: str, taken: set[str]) -> str:
    """The name, with a number if there is such a block."""
    number, tried = 1, name
    while tried in taken:
        number, tried = number + 1, f"{name}_{number}"
    taken.add(tried)
    return tried
