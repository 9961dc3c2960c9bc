"""What primitives of a schedule cannot change in a product, changed in the function before."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import s_tir, tirx
from tvm.ir import Range, TensorLoad
from tvm.tirx import Buffer, BufferStore, Expr, IterVar, PrimFunc, Stmt

from mfmadsl.schedule.product.added_nest import (
    again,
    block_of,
    buffer_of,
    element_wise,
    looped,
    replaced,
    unique,
)
from mfmadsl.schedule.product.address_space import check_addresses
from mfmadsl.schedule.product.casts import with_bytes_multiplied
from mfmadsl.schedule.product.factored import with_plain_extents
from mfmadsl.schedule.product.index_type import with_one_index_type
from mfmadsl.schedule.product.launch_symbols import with_launch_symbols
from mfmadsl.schedule.product.memory import final_store, memory
from mfmadsl.schedule.product.nest import (
    Nest,
    block_names,
    buffers,
    is_number,
    same,
)
from mfmadsl.schedule.product.sum_of_products import (
    SumOfProducts,
    product_nest,
    sum_of_products,
    uncast,
    uses,
)

WIDE = {"float16": "float32", "bfloat16": "float32"}
"""What sums of a narrow type are kept in: no instruction sums in it, and the result is closer."""


def prepared(function: PrimFunc, block: str | None = None, first: str | None = None) -> PrimFunc:
    """The same function, with its product C = C + A * B as instructions have it.

    The first factor is the one of the type `first`, if only one is; else the second factor is the
    one whose rows lie together in the result. Each factor has a buffer of its own: of A times A
    transposed, one is copied by a block before the product, which can be inlined. A vector gets an
    axis of length 1. An extent of 2 * n becomes one of which TVM proves more, and places of 32 and
    of 64 bits beside each other become those of 64. A sum in float16 or bfloat16 becomes one in
    float32, rounded by a block after the product. `block` names the product where there are several
    sums.

    Raises ScheduleError, with the name of the block, if it is no product.
    """
    taken = block_names(function)
    check_addresses(function)
    function = with_bytes_multiplied(function, block)
    function = with_launch_symbols(with_one_index_type(function))
    function = with_plain_extents(function, block)
    product = sum_of_products(product_nest(function, block))
    nest, store = product.nest, product.store
    before: list[Stmt] = []
    after: list[Stmt] = []
    allocated: list[Buffer] = []
    lacking = [None if product.axes(kind) else _unit(kind, nest) for kind in "ij"]
    units = [unit for unit in lacking if unit is not None]
    axes = [*units, *nest.block.iter_vars]

    total, places = store.buffer, list(store.indices)
    sum_type = WIDE.get(product.sum_type, product.sum_type)
    if units or _hidden(product, store, "ij") or sum_type != product.sum_type:
        spatial = [*units, *(axis for axis in nest.block.iter_vars if uses(store, axis.var))]
        total, places = buffer_of(f"{store.buffer.name}_sum", spatial, sum_type)
        allocated.append(total)
        name = unique(f"{nest.name}_result", taken)
        result = _cast(tirx.BufferLoad(total, places), product.sum_type)
        after.append(element_wise(name, spatial, store.buffer, store.indices, result))

    factors: list[Expr] = []
    for factor, unit in _in_order(function, product, lacking, first):
        # A cast that rounds to the narrow type has to stay when the sum is in a wide one.
        value = uncast(factor) if sum_type == product.sum_type else factor
        element = uncast(factor)
        assert isinstance(element, TensorLoad)
        shared = any(element.source.same_as(buffer) for buffer in buffers(factors))
        own_buffer = isinstance(value, TensorLoad) and not shared
        hidden = [*_hidden(product, element, "ijk"), *product.some_batches(element)]
        if not own_buffer or unit is not None or hidden:
            used = [axis for axis in axes if axis in (unit, *hidden) or uses(element, axis.var)]
            name = unique(f"{element.source.name}_copy", taken)
            copy, own = buffer_of(name, used, str(value.ty.dtype))
            allocated.append(copy)
            before.append(element_wise(name, used, copy, own, value))
            value = tirx.BufferLoad(copy, own)
        factors.append(_cast(value, sum_type))

    sum_so_far = tirx.BufferLoad(total, places)
    body = tirx.BufferStore(total, sum_so_far + factors[0] * factors[1], places)
    if same(body, nest.block.body):
        return function
    init = tirx.BufferStore(total, tirx.const(0, sum_type), places)
    changed = block_of(nest.name, axes, body, init, nest.block.annotations)
    loops = [tirx.Var(axis.var.name, axis.dom.extent.ty) for axis in units]
    realize = s_tir.SBlockRealize([*loops, *nest.realize.iter_values], True, changed)
    middle = looped(loops, units, again(nest.loops, realize))
    return replaced(function, nest, [*before, middle, *after], allocated)


def _hidden(product: SumOfProducts, use: TensorLoad | BufferStore, kinds: str) -> list[IterVar]:
    """Axes of length 1 that TVM would leave out, though a load or store needs them.

    Rows, columns or sum have no other axis, so that they are padded along these, but they are no
    indices of their own. A factor needs those of a sum even where its places do not depend on them.
    """
    found = []
    for kind in kinds:
        axes = product.axes(kind)
        if all(is_number(axis.dom.extent, 1) for axis in axes):
            found += [
                axis
                for axis in axes
                if (kind == "k" or uses(use, axis.var))
                and not any(index.same_as(axis.var) for index in use.indices)
            ]
    return found


def _unit(kind: str, nest: Nest) -> IterVar:
    """An axis of length 1, of the type of the others."""
    of = nest.block.iter_vars[0].dom.extent.ty
    zero, one = (tirx.IntImm(of, number) for number in (0, 1))
    return IterVar(Range.from_min_extent(zero, one), tirx.Var(f"unit_{kind}", of), IterVar.DataPar)


def _cast(value: Expr, dtype: str) -> Expr:
    return value if str(value.ty.dtype) == dtype else value.astype(dtype)


def _in_order(
    function: PrimFunc, product: SumOfProducts, lacking: Sequence[IterVar | None],
    first: str | None,
) -> list[tuple[Expr, IterVar | None]]:  # fmt: skip
    """The factors with the axis that each lacks.

    The last one is that along whose axis the result lies together, if `first` does not decide.
    """
    factors = list(zip(product.factors, lacking, strict=True))
    types = [str(uncast(factor).ty.dtype) for factor in product.factors]
    if types.count(first or "") == 1:
        return factors if types[0] == first else factors[::-1]
    end = final_store(function, product.store)
    axes = {kind: product.axes(kind) for kind in "ij"}
    if end is not None and memory(end, axes).axis == "i":
        factors.reverse()
    return factors
