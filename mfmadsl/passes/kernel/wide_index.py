"""Indices and extents of large buffers in 64 bits.

TVM computes the place of an element, and the length of a buffer that it flattens, in the type of
indices and extents, which is 32 bits for most workloads: past 2^31 elements either would be another
number.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import tirx
from tvm.ir import PrimType, TensorLoad
from tvm.tirx import AllocBuffer, Buffer, BufferStore, Expr, PrimFunc

from mfmadsl.passes.tir.expression import constant, scope_of

_LIMIT = 1 << 31


def wide_indices(function: PrimFunc) -> PrimFunc:
    """The function, not flattened yet, with 64-bit indices and extents of all buffers that may need
    them."""

    def load(node: TensorLoad) -> Expr:
        if not _is_large(node.source):
            return node
        return tirx.BufferLoad(node.source, [_wide(index) for index in node.indices])

    def store(node: BufferStore) -> BufferStore:
        if not _is_large(node.buffer):
            return node
        return BufferStore(node.buffer, node.value, [_wide(index) for index in node.indices])

    large = {b.__chandle__(): _with_wide_extents(b) for b in _large_buffers(function)}
    if not large:
        return function

    def wide(variable: Any) -> Any:  # buffers are variables
        return large.get(variable.__chandle__(), variable)

    body = tvm_ffi.structural_map(function.body, ((TensorLoad, load), (BufferStore, store)))
    body = tvm_ffi.structural_map(body, (tirx.Var, wide))
    parameters = [wide(parameter) for parameter in function.params]
    return PrimFunc(parameters, body, function.ret_type, function.attrs)


def _large_buffers(function: PrimFunc) -> list[Buffer]:
    """Those of the arguments, of what the function allocates, and of what else it reaches."""
    found = [each for each in function.params if not isinstance(each.ty, PrimType)]
    tvm_ffi.structural_walk(
        function.body,
        (
            (AllocBuffer, lambda node: found.append(node.buffer)),
            (TensorLoad, lambda node: found.append(node.source)),
            (BufferStore, lambda node: found.append(node.buffer)),
        ),
    )
    return list({b.__chandle__(): b for b in found if _is_large(b)}.values())


def _with_wide_extents(buffer: Buffer) -> Buffer:
    """The buffer with its numbers of 64 bits; a symbol stays the variable that the host binds."""
    shape = [
        extent if number is None else tirx.const(number, "int64")
        for extent, number in ((each, constant(each)) for each in buffer.shape)
    ]
    return tirx.decl_buffer(shape, buffer.dtype, buffer.name, scope=scope_of(buffer))


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
