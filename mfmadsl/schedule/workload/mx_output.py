"""A workload whose result is quantised to an MX format, as the next layer reads it."""

from __future__ import annotations

from math import frexp

import ml_dtypes
from tvm import tirx
from tvm.ir import Range
from tvm.s_tir import SBlockRealize
from tvm.tirx import Buffer, IterVar, PrimFunc, Stmt

from mfmadsl.argument import check_choice
from mfmadsl.model import ELEMENT_TYPES
from mfmadsl.model.numpy_type import numpy_type
from mfmadsl.passes.tir.block import in_sequence, statements, with_parts
from mfmadsl.prim_func import prim_func
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.added_nest import block_of, element_wise, looped, unique
from mfmadsl.schedule.product.described import axes_of
from mfmadsl.schedule.product.nest import block_names
from mfmadsl.schedule.workload.result import float32_result

TYPES = ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")
"""Elements of an MX output."""

GROUP = 32
"""Elements along N that share a scale (OCP Microscaling Formats v1.0, 5.2)."""

_NAN = 255  # the scale that is NaN (5.4.1)
_BIAS = 127  # of exponents of a scale (5.4.1) and of float32
_FRACTION_BITS = 23  # of float32
_MAGNITUDE = (1 << 31) - 1  # all bits but the sign


def mx_output(workload: PrimFunc, element_type: str) -> PrimFunc:
    """The workload with its float32 result C [..., n] in an MX format, as a scaled operand is read.

    C becomes one of `element_type`: float8_e4m3fn (fp8), float8_e5m2 (bf8) or float4_e2m1fn (fp4).
    A last parameter, SCALE_C, uint8 [..., n / 32], holds the scales of 32 neighbours in E8M0. They
    are those of OCP's Microscaling Formats v1.0, 6.3: the largest power of two in a group, divided
    by the largest one of the element type. Elements are rounded to nearest, ties to even, and at
    most the type's largest number. A group that holds NaN or an infinity has the scale 255, NaN. In
    kernels elements of four bits lie packed along n, [..., n / 2] bytes.

    Raises ArgumentError for another type, and ScheduleError for a workload without one product,
    with several results, or with one that is not float32 or has an n that is no multiple of 32.
    """
    short = {ELEMENT_TYPES[each].short: each for each in TYPES}
    check_choice("element_type", element_type, (*short, *TYPES))
    function = prim_func("workload", workload, ScheduleError)
    exact = float32_result(function, "an MX output", GROUP, "the elements that share a scale")
    taken = block_names(function)
    name = str(exact.name)
    *lead, columns = exact.shape
    of_groups = [*lead, tirx.floordiv(columns, GROUP)]
    largest = tirx.decl_buffer(of_groups, "int32", f"{name}_largest")
    scales = tirx.decl_buffer(of_groups, "uint8", f"SCALE_{name}")
    elements = tirx.decl_buffer(exact.shape, short.get(element_type, element_type), name)
    added = [
        _largest_of(exact, largest, unique(str(largest.name), taken)),
        _scales_of(largest, scales, str(elements.dtype), unique(str(scales.name), taken)),
        _elements_of(exact, scales, elements, unique(f"{name}_elements", taken)),
    ]
    assert isinstance(function.body, SBlockRealize)
    root = function.body.block
    root = with_parts(
        root, body=in_sequence([*statements(function), *added]),
        allocated=[*root.alloc_buffers, exact, largest],
    )  # fmt: skip
    parameters = [elements if each.same_as(exact) else each for each in function.params]
    return PrimFunc(
        [*parameters, scales], SBlockRealize([], True, root), function.ret_type,
        attrs=function.attrs,
    )  # fmt: skip


def _largest_of(exact: Buffer, largest: Buffer, name: str) -> Stmt:
    """The bits of the largest magnitude of each group; as integers NaN is above all numbers."""
    places = list(axes_of(largest.shape))
    kind = str(places[-1].var.ty.dtype)
    domain = Range.from_min_extent(tirx.IntImm(kind, 0), tirx.IntImm(kind, GROUP))
    inner = IterVar(domain, tirx.Var("r", kind), IterVar.CommReduce)
    axes = [
        IterVar(each.dom, tirx.Var(f"v_{each.var.name}", each.var.ty), each.iter_type)
        for each in (*places, inner)
    ]
    *own, r = (each.var for each in axes)
    *rows, group = own
    element = tirx.BufferLoad(exact, [*rows, group * GROUP + r])
    magnitude = tirx.reinterpret("int32", element) & _MAGNITUDE
    value = tirx.max(tirx.BufferLoad(largest, own), magnitude)
    store = tirx.BufferStore(largest, value, own)
    init = tirx.BufferStore(largest, tirx.const(0, "int32"), own)
    loops = [each.var for each in (*places, inner)]
    block = block_of(name, axes, store, init, {})
    return looped(loops, (*places, inner), SBlockRealize(loops, True, block))


def _scales_of(largest: Buffer, scales: Buffer, dtype: str, name: str) -> Stmt:
    axes = list(axes_of(scales.shape))
    places = [each.var for each in axes]
    exponent = tirx.BufferLoad(largest, places) >> _FRACTION_BITS
    of_largest = frexp(float(ml_dtypes.finfo(numpy_type(dtype)).max))[1] - 1
    nan = tirx.const(_NAN, "int32")
    scale = tirx.Select(tirx.EQ(exponent, nan), nan, tirx.max(exponent - of_largest, 0))
    return element_wise(name, axes, scales, places, scale.astype("uint8"))


def _elements_of(exact: Buffer, scales: Buffer, elements: Buffer, name: str) -> Stmt:
    dtype = str(elements.dtype)
    axes = list(axes_of(elements.shape))
    *rows, column = places = [each.var for each in axes]
    scale = tirx.BufferLoad(scales, [*rows, column // GROUP]).astype("int32")
    # 2 ** (127 - scale), by the bits of its exponent.
    reciprocal = tirx.reinterpret("float32", 2 * _BIAS - scale << _FRACTION_BITS)
    value = tirx.BufferLoad(exact, places) * reciprocal
    most = tirx.const(float(ml_dtypes.finfo(numpy_type(dtype)).max), "float32")
    value = tirx.min(tirx.max(value, -most), most)
    return element_wise(name, axes, elements, places, tirx.Cast(dtype, value))
