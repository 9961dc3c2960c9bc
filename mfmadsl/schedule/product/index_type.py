"""Places of one type: TVM's primitives take no loop of 64 bits beside one of 32."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Range, TensorLoad
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import Buffer, BufferStore, Expr, For, IterVar, PrimFunc, Var

from mfmadsl.argument import LARGEST_EXTENT
from mfmadsl.passes.tir.expression import constant, variables_of, widened
from mfmadsl.passes.tir.walk import mapped, walk
from mfmadsl.schedule.error import ScheduleError


def with_one_index_type(function: PrimFunc) -> PrimFunc:
    """The function with all loops and extents in 64 bits, if some of them are; else as it is.

    Raises ScheduleError if it takes a number of 32 bits that is an extent, too: a parameter's type
    is its caller's.
    """
    return in_64_bits(function) if _types(_extents(function)) == {"int32", "int64"} else function


def in_64_bits(function: PrimFunc) -> PrimFunc:
    """The function with all loops and extents in 64 bits. Raises ScheduleError as above."""
    loops, axes, buffers = _places(function)
    symbols = [v for extent in _extents(function) for v in variables_of(extent)]
    _check_parameters(function, symbols)
    narrow = [*(loop.loop_var for loop in loops), *(axis.var for axis in axes), *symbols]
    own = {v.__chandle__(): Var(v.name, "int64") for v in narrow if str(v.ty.dtype) == "int32"}
    own |= {buffer.__chandle__(): _wide_buffer(buffer, own) for buffer in buffers}
    return _rewritten(function, own)


def has_narrow_extents(function: PrimFunc) -> bool:
    """Whether some loops or extents are numbers or symbols of 32 bits, in plain loops; no symbol is
    a parameter."""
    narrow = [extent for extent in _extents(function) if str(extent.ty.dtype) == "int32"]
    symbols = [extent for extent in narrow if constant(extent) is None]
    plain = all(each.kind == tirx.ForKind.SERIAL for each in _places(function)[0])
    free = not any(
        not isinstance(each, Var) or any(each.same_as(p) for p in function.params)
        for each in symbols
    )
    return bool(narrow) and plain and free


def in_32_bits(function: PrimFunc) -> PrimFunc:
    """The function with its loops and extents in 32 bits, or as it is where they do not fit."""
    extents = _extents(function)
    if "int64" not in _types(extents):
        return function
    _, _, buffers = _places(function)
    numbers = [constant(extent) for extent in extents]
    if any(number is None or number > LARGEST_EXTENT for number in numbers) or any(
        str(buffer.dtype) == "int64"
        for buffer in buffers  # which TVM's pass would narrow, too
    ):
        return function
    narrowed = tirx.transform.ForceNarrowIndexToInt32()(tvm.IRModule({"main": function}))
    function = narrowed["main"]
    return function.with_body(mapped(function.body, (tirx.Cast, _needed)))


def _needed(cast: tirx.Cast) -> Expr:
    """A cast, or what it casts to the type that it has."""
    return cast.value if cast.value.ty == cast.ty else cast


def _places(function: PrimFunc) -> tuple[list[For], list[IterVar], list[Buffer]]:
    """The loops of a function, the axes of its blocks, and its buffers."""
    loops: list[For] = []
    blocks: list[SBlock] = []
    walk(function.body, (For, loops.append))
    walk(function.body, (SBlock, blocks.append))
    axes = [axis for block in blocks for axis in block.iter_vars]
    buffers = [p for p in function.params if getattr(p, "shape", None) is not None]
    buffers += [buffer for block in blocks for buffer in block.alloc_buffers]
    return loops, axes, buffers


def _extents(function: PrimFunc) -> list[Expr]:
    loops, axes, buffers = _places(function)
    return [
        *(loop.extent for loop in loops),
        *(axis.dom.extent for axis in axes),
        *(extent for buffer in buffers for extent in buffer.shape),
    ]


def _types(extents: Iterable[Expr]) -> set[str]:
    return {str(extent.ty.dtype) for extent in extents}


def _check_parameters(function: PrimFunc, symbols: list[Var]) -> None:
    for parameter in function.params:
        if str(parameter.ty) == "int32" and any(parameter.same_as(v) for v in symbols):
            raise ScheduleError(
                f"workload: `{parameter.name}` is a parameter of 32 bits and an extent, beside"
                " others of 64: give it 64, or the others 32"
            )


def _wide_buffer(buffer: Buffer, own: Mapping[int, Var]) -> Buffer:
    shape = [
        widened(mapped(extent, (Var, lambda v: own.get(v.__chandle__(), v))))
        for extent in buffer.shape
    ]
    # Without a layout, as TVM's own functions have them, so that fusion finds them alike.
    return tirx.decl_buffer(shape, buffer.dtype, buffer.name, scope=buffer.scope(), layout=None)


def _rewritten(function: PrimFunc, own: Mapping[int, Var]) -> PrimFunc:
    """The function with variables replaced by wide ones, and all places that are made of them; in
    values they stay narrow."""

    def used(variable: Var, region: tvm_ffi.DefRegionKind) -> Expr:
        wide = own.get(variable.__chandle__(), variable)
        is_number = region == tvm_ffi.DefRegionKind.NONE and str(variable.ty) == "int32"
        return wide if wide is variable or not is_number else tirx.Cast("int32", wide)

    def load(node: TensorLoad) -> Expr:
        return tirx.BufferLoad(node.source, [widened(index) for index in node.indices])

    def store(node: BufferStore) -> BufferStore:
        return BufferStore(node.buffer, node.value, [widened(index) for index in node.indices])

    def realize(node: SBlockRealize) -> SBlockRealize:
        places = [widened(place) for place in node.iter_values]
        return SBlockRealize(places, node.predicate, node.block)

    def loop(node: For) -> For:
        return For(
            node.loop_var, widened(node.min), widened(node.extent), node.kind, node.body,
            node.thread_binding, node.annotations,
        )  # fmt: skip

    body = tvm_ffi.structural_map(
        function.body,
        (
            (TensorLoad, load),
            (BufferStore, store),
            (Range, lambda r: Range.from_min_extent(widened(r.min), widened(r.extent))),
            (For, loop),
            (SBlockRealize, realize),
        ),
        with_def_region_kind=(Var, used),
    )
    parameters = [own.get(each.__chandle__(), each) for each in function.params]
    return PrimFunc(parameters, body, function.ret_type, function.attrs)
