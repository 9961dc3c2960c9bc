"""Sums of integers that are taken in parts: what one part adds up to may not fit, all of them do.

Matrix and dot-product instructions wrap around, so that a part may be 2^32 off, and the sum of the
parts is right again. TVM tells LLVM that an addition of int32 or uint32 never wraps, which makes
the sum undefined; of the sum in 64 bits, cut to 32, LLVM makes one addition that may.
"""

from __future__ import annotations

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import BufferStore, Expr, PrimFunc

from mfmadsl.passes.tir.rewrite import dtype_of, of_lanes

_WIDE = {"int32": "int64", "uint32": "uint64"}


def wrapping_sums(function: PrimFunc) -> PrimFunc:
    """The function with what is added to an element of a buffer, and stored there again, added so
    that it may wrap around."""
    return function.with_body(tvm_ffi.structural_map(function.body, (BufferStore, _wrapping)))


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
