"""Places of one type: TVM's primitives take no loop of 64 bits beside one of 32."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import tvm_ffi
from tvm import tirx
from tvm.ir import Range, TensorLoad
from tvm.s_tir import SBlock
from tvm.tirx import Buffer, BufferStore, Expr, For, PrimFunc, Select, Var

from mfmadsl.passes.tir.expression import OfTwo, variables_of, widened
from mfmadsl.schedule.error import ScheduleError


def with_one_index_type(function: PrimFunc) -> PrimFunc:
    """The function with all loops and extents in 64 bits, if some of them are; else as it is.

    Raises ScheduleError if it takes a number of 32 bits that is an extent, too: a parameter's type
    is its caller's.
    """
    loops: list[For] = []
    blocks: list[SBlock] = []
    tvm_ffi.structural_walk(function.body, (For, loops.append))
    tvm_ffi.structural_walk(function.body, (SBlock, blocks.append))
    axes = [axis for block in blocks for axis in block.iter_vars]
    buffers = [p for p in function.params if getattr(p, "shape", None) is not None]
    buffers += [buffer for block in blocks for buffer in block.alloc_buffers]
    extents = [
        *(loop.extent for loop in loops),
        *(axis.dom.extent for axis in axes),
        *(extent for buffer in buffers for extent in buffer.shape),
    ]
    if {str(extent.ty.dtype) for extent in extents} != {"int32", "int64"}:
        return function
    symbols = [v for extent in extents for v in variables_of(extent)]
    _check_parameters(function, symbols)
    narrow = [*(loop.loop_var for loop in loops), *(axis.var for axis in axes), *symbols]
    own = {v.__chandle__(): Var(v.name, "int64") for v in narrow if str(v.ty.dtype) == "int32"}
    own |= {buffer.__chandle__(): _wide_buffer(buffer, own) for buffer in buffers}
    return _rewritten(function, own)


def _check_parameters(function: PrimFunc, symbols: list[Var]) -> None:
    for parameter in function.params:
        if str(parameter.ty) == "int32" and any(parameter.same_as(v) for v in symbols):
            raise ScheduleError(
                f"workload: `{parameter.name}` is a parameter of 32 bits and an extent, beside"
                " others of 64: give it 64, or the others 32"
            )


def _wide_buffer(buffer: Buffer, own: Mapping[int, Var]) -> Buffer:
    shape = [
        widened(tvm_ffi.structural_map(extent, (Var, lambda v: own.get(v.__chandle__(), v))))
        for extent in buffer.shape
    ]
    return tirx.decl_buffer(shape, buffer.dtype, buffer.name, scope=buffer.scope())


def _rewritten(function: PrimFunc, own: Mapping[int, Var]) -> PrimFunc:
    """The function with variables replaced by wide ones, and all that is made of them in turn."""

    def of_two(node: OfTwo) -> Expr:
        a, b = node.a, node.b
        if {str(a.ty.dtype), str(b.ty.dtype)} == {"int32", "int64"}:
            a, b = widened(a), widened(b)
        return type(node)(a, b)

    def select(node: Select) -> Expr:
        a, b = node.true_value, node.false_value
        if {str(a.ty.dtype), str(b.ty.dtype)} == {"int32", "int64"}:
            a, b = widened(a), widened(b)
        return Select(node.condition, a, b)

    def load(node: TensorLoad) -> Expr:
        return tirx.BufferLoad(node.source, [widened(index) for index in node.indices])

    def store(node: BufferStore) -> BufferStore:
        value, dtype = node.value, str(node.buffer.dtype)
        if str(value.ty.dtype) != dtype:  # a place that is stored as a value
            value = tirx.Cast(dtype, value)
        return BufferStore(node.buffer, value, [widened(index) for index in node.indices])

    def loop(node: For) -> For:
        return For(
            node.loop_var, widened(node.min), widened(node.extent), node.kind, node.body,
            node.thread_binding, node.annotations,
        )  # fmt: skip

    body = tvm_ffi.structural_map(
        function.body,
        (
            (Var, lambda v: own.get(v.__chandle__(), v)),
            (get_args(OfTwo), of_two),
            (Select, select),
            (TensorLoad, load),
            (BufferStore, store),
            (Range, lambda r: Range.from_min_extent(widened(r.min), widened(r.extent))),
            (For, loop),
        ),
    )
    parameters = [own.get(each.__chandle__(), each) for each in function.params]
    return PrimFunc(parameters, body, function.ret_type, function.attrs)
