"""Indices of large buffers in 64 bits.

TVM computes the place of an element in the type of its indices, which is 32 bits for most
workloads: past 2^31 elements it would be another place.
"""

from __future__ import annotations

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import Buffer, BufferStore, Expr, PrimFunc

from mfmadsl.passes.tir.expression import constant, scope_of

_LIMIT = 1 << 31


def wide_indices(function: PrimFunc) -> PrimFunc:
    """The function, not flattened yet, with 64-bit indices of all buffers that may need them."""

    def load(node: TensorLoad) -> Expr:
        if not _is_large(node.source):
            return node
        return tirx.BufferLoad(node.source, [_wide(index) for index in node.indices])

    def store(node: BufferStore) -> BufferStore:
        if not _is_large(node.buffer):
            return node
        return BufferStore(node.buffer, node.value, [_wide(index) for index in node.indices])

    return function.with_body(
        tvm_ffi.structural_map(function.body, ((TensorLoad, load), (BufferStore, store)))
    )


def _is_large(buffer: Buffer) -> bool:
    """Whether a buffer of global memory has 2^31 elements or more, as far as is known."""
    if scope_of(buffer) != "global":
        return False
    elements = 1
    for extent in buffer.shape:
        elements *= constant(extent) or 1
    return elements >= _LIMIT


def _wide(index: Expr) -> Expr:
    return index if str(index.ty.dtype) == "int64" else tirx.Cast("int64", index)
