"""Small buffers on the stack, where LLVM makes registers of them.

TVM asks its runtime for the memory of a buffer of 1024 bytes or more, and lets buffers that are not
in use at the same time share it. LLVM does not know then what else reaches that memory, and may
store what a loop adds up in each of its iterations. Of an array of its own on the stack whose
indices are numbers it makes as many values.
"""

from __future__ import annotations

from math import prod

import tvm
from tvm import tirx
from tvm.tirx import AllocBuffer, Buffer, DeclBuffer, PrimFunc, Var

from mfmadsl.passes.tir.expression import constant, scope_of, variables_of
from mfmadsl.passes.tir.rewrite import with_body
from mfmadsl.passes.tir.walk import mapped, walk

_MOST = 8192
"""Bytes: four times as many as the vector registers of any CPU have."""

_AS_IT_STANDS = "disable_lower_builtin"
"""TVM's annotation of a buffer that its code generator shall allocate itself: on the stack."""


def apart(function: PrimFunc) -> PrimFunc:
    """The function, with flat buffers, whose small ones are `local`: TVM's StorageRewrite lets them
    share no memory with those that are not. One of which there are views is left as it is."""
    allocated: list[Buffer] = []
    viewed: set[object] = set()

    def allocation(node: AllocBuffer) -> None:
        if scope_of(node.buffer) == "global" and _is_small(node.buffer):
            allocated.append(node.buffer)

    def view(node: DeclBuffer) -> None:
        viewed.update(variable.__chandle__() for variable in variables_of(node.data))

    walk(function.body, (AllocBuffer, allocation), (DeclBuffer, view))
    own = {
        each.__chandle__(): tirx.decl_buffer(each.shape, each.dtype, each.name, scope="local")
        for each in allocated
        if each.__chandle__() not in viewed
    }
    body = mapped(function.body, (Var, lambda v: own.get(v.__chandle__(), v)))
    return with_body(function, body)


def keep_on_stack(function: PrimFunc) -> PrimFunc:
    """The function, with flat buffers, whose small `local` ones are allocated on the stack."""

    def allocation(node: AllocBuffer) -> AllocBuffer:
        if scope_of(node.buffer) != "local" or not _is_small(node.buffer):
            return node
        annotations = {**(node.annotations or {}), _AS_IT_STANDS: tirx.const(1, "bool")}
        return AllocBuffer(node.buffer, annotations)

    return with_body(function, mapped(function.body, (AllocBuffer, allocation)))


def _is_small(buffer: Buffer) -> bool:
    extents = [constant(extent) or _MOST + 1 for extent in buffer.shape]
    dtype = tvm.DataType(str(buffer.dtype))
    return prod(extents) * dtype.bits * dtype.lanes <= 8 * _MOST
