"""Arithmetic of integers that may wrap around: in uint32, and in sums that are taken in parts.

What one part of a sum adds up to may not fit, where all of them do. Matrix and dot-product
instructions wrap around, so that a part may be 2^32 off, and the sum of the parts is right again.
TVM tells LLVM that int32 and uint32 never wrap, which makes such a result undefined; of one in 64
bits, cut to 32, LLVM makes an instruction that may.
"""

from __future__ import annotations

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import BufferStore, Expr, PrimFunc

from mfmadsl.passes.tir.rewrite import dtype_of, of_lanes, with_body
from mfmadsl.passes.tir.walk import mapped

_ARITHMETIC = tirx.Add, tirx.Sub, tirx.Mul
_WIDE = {"int32": "int64", "uint32": "uint64"}


def wrapping_sums(function: PrimFunc) -> PrimFunc:
    """The function with what is added to an element of a buffer, and stored there again, added so
    that it may wrap around, and so all that is computed in uint32."""
    body = mapped(function.body, (BufferStore, _wrapping))
    return with_body(function, mapped(body, (_ARITHMETIC, _unsigned)))


def _unsigned(value: tirx.Add | tirx.Sub | tirx.Mul) -> Expr:
    if dtype_of(value) != "uint32":
        return value
    wide, narrow = of_lanes("uint64", value), of_lanes("uint32", value)
    return tirx.Cast(narrow, type(value)(tirx.Cast(wide, value.a), tirx.Cast(wide, value.b)))


def _wrapping(store: BufferStore) -> BufferStore:
    value, narrow = store.value, dtype_of(store.value)
    if not isinstance(value, tirx.Add) or narrow not in _WIDE:
        return store
    if not any(_is_before(side, store) for side in (value.a, value.b)):
        return store
    wide = of_lanes(_WIDE[narrow], value)
    total = tirx.Cast(wide, value.a) + tirx.Cast(wide, value.b)
    return BufferStore(store.buffer, tirx.Cast(of_lanes(narrow, value), total), store.indices)


def _is_before(value: Expr, store: BufferStore) -> bool:
    """Whether a value is what the store overwrites."""
    return (
        isinstance(value, TensorLoad)
        and value.source.same_as(store.buffer)
        and bool(tvm_ffi.structural_equal(list(value.indices), list(store.indices)))
    )
