"""Indices and extents of large buffers in 64 bits.

TVM computes the place of an element, and the length of a buffer that it flattens, in the type of
indices and extents, which is 32 bits for most workloads: past 2^31 elements either would be another
number.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import AttrStmt, Buffer, BufferStore, Expr, For, PrimFunc

from mfmadsl.passes.tir.bounds import bind_loop, bind_thread
from mfmadsl.passes.tir.expression import constant, scope_of
from mfmadsl.passes.tir.walk import mapped, walk

_LIMIT = 1 << 31


def wide_indices(function: PrimFunc) -> PrimFunc:
    """The function, not flattened yet, with 64-bit indices and extents of all buffers that may need
    them."""
    twins = {b.__chandle__(): _with_wide_extents(b) for b in _large_buffers(function)}
    if not twins:
        return function

    def load(node: TensorLoad) -> Expr:
        if node.source.__chandle__() not in twins:
            return node
        return tirx.BufferLoad(node.source, [_wide(index) for index in node.indices])

    def store(node: BufferStore) -> BufferStore:
        if node.buffer.__chandle__() not in twins:
            return node
        return BufferStore(node.buffer, node.value, [_wide(index) for index in node.indices])

    body = mapped(function.body, (TensorLoad, load), (BufferStore, store))
    # Buffers are variables.
    body = mapped(body, (tirx.Var, lambda v: twins.get(v.__chandle__(), v)))
    parameters = [twins.get(p.__chandle__(), p) for p in function.params]
    return PrimFunc(parameters, body, function.ret_type, function.attrs)


def _large_buffers(function: PrimFunc) -> list[Buffer]:
    """Buffers of global memory that have 2^31 elements, or whose indices go as far.

    Those of a tile beyond an edge do, which no lane takes: a C of one row has places of 15 more.
    """
    accesses: list[tuple[Buffer, Sequence[Expr]]] = []
    analyzer = Analyzer()

    walk(
        function.body,
        (AttrStmt, lambda node: bind_thread(analyzer, node)),
        (For, lambda node: bind_loop(analyzer, node)),
        (TensorLoad, lambda node: accesses.append((node.source, node.indices))),
        (BufferStore, lambda node: accesses.append((node.buffer, node.indices))),
    )
    return [
        buffer
        for buffer, indices in accesses
        if scope_of(buffer) == "global"
        and max(_elements(buffer.shape), _reach(buffer, indices, analyzer)) >= _LIMIT
    ]


def _with_wide_extents(buffer: Buffer) -> Buffer:
    """The buffer with its numbers of 64 bits; a symbol stays the variable that the host binds."""
    shape = [
        extent if number is None else tirx.const(number, "int64")
        for extent, number in ((each, constant(each)) for each in buffer.shape)
    ]
    return tirx.decl_buffer(
        shape, buffer.dtype, buffer.name, strides=buffer.strides, elem_offset=buffer.elem_offset,
        scope=scope_of(buffer), offset_factor=buffer.offset_factor,
    )  # fmt: skip


def _reach(buffer: Buffer, indices: Sequence[Expr], analyzer: Analyzer) -> int:
    """The last place of the flat buffer that indices may name, as far as is known."""
    last = 0
    for axis, index in enumerate(indices):
        extent = constant(buffer.shape[axis])
        most = int(analyzer.const_int_bound(index).max_value)
        if most >= _LIMIT - 1:  # what is read from memory, say
            most = 0 if extent is None else extent - 1
        last += most * _elements(buffer.shape[axis + 1 :])
    return last


def _elements(shape: Sequence[Expr]) -> int:
    """How many elements there are, as far as is known."""
    return prod(constant(extent) or 1 for extent in shape)


def _wide(index: Expr) -> Expr:
    return index if str(index.ty.dtype) == "int64" else tirx.Cast("int64", index)
