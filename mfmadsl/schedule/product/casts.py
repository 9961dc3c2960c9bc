"""Bytes that a workload casts to int32 in blocks of their own, before it multiplies them."""

from __future__ import annotations

from tvm import s_tir, tirx
from tvm.ir import TensorLoad
from tvm.tirx import BufferStore, PrimFunc

from mfmadsl.schedule.product.nest import Nest, nests
from mfmadsl.schedule.product.sum_of_products import product_nest, sum_of_products

_BYTES = ("int8", "uint8")


def with_bytes_multiplied(function: PrimFunc, block: str | None = None) -> PrimFunc:
    """The function, whose product casts its own bytes: what instructions multiply is bytes."""
    product = sum_of_products(product_nest(function, block))
    if product.sum_type != "int32":
        return function
    factors = [factor.source for factor in (product.first, product.second)]
    casts = [
        nest.name
        for nest in nests(function)
        if _is_cast(nest) and any(nest.store.buffer.same_as(factor) for factor in factors)
    ]
    if not casts:
        return function
    sch = s_tir.Schedule(function)
    for name in casts:
        cast = sch.get_sblock(name)
        # What others read as well, or a result, is computed in any case.
        read_by = [sch.get(consumer).name_hint for consumer in sch.get_consumers(cast)]
        if read_by == [product.nest.name]:
            sch.compute_inline(cast)
    return sch.mod["main"]


def _is_cast(nest: Nest) -> bool:
    """Whether a block does nothing but cast bytes to int32."""
    store = nest.block.body
    if not isinstance(store, BufferStore) or not isinstance(store.value, tirx.Cast):
        return False
    of = store.value.value
    is_byte = isinstance(of, TensorLoad) and str(of.ty.dtype) in _BYTES
    return is_byte and str(store.value.ty.dtype) == "int32"
