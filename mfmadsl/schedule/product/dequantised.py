"""A scaled product made one of bfloat16, for chips that have no scaled instructions."""

from __future__ import annotations

from math import lcm

from tvm import tirx
from tvm.s_tir import SBlockRealize
from tvm.tirx import Buffer, Expr, IterVar, PrimFunc, Stmt, Var

from mfmadsl.model import ELEMENT_TYPES, Architecture, ElementType
from mfmadsl.passes.tir.annotation import REMARK
from mfmadsl.schedule.product.added_nest import (
    again,
    block_of,
    buffer_of,
    element_wise,
    replaced,
    unique,
)
from mfmadsl.schedule.product.described import (
    DescribedProduct,
    described_intrinsics,
    group_of,
)
from mfmadsl.schedule.product.nest import block_names
from mfmadsl.schedule.product.scaled_sum import SCALE

VALUE = "bfloat16"
"""It has the fractions of all scaled elements, and the exponents of float32."""

SUM = "float32"
_FRACTION, _BIAS = 23, 127  # of float32

_FIELDS = {"float6_e2m3fn": (3, 1), "float6_e3m2fn": (2, 3), "float4_e2m1fn": (1, 1)}
"""Bits of the fraction, and the bias of the exponent (OCP Microscaling Formats v1.0, 5.3)."""


def is_dequantised(product: DescribedProduct, chip: Architecture) -> bool:
    """Whether a scaled product has to be one of bfloat16: the chip has no scaled instruction."""
    having = {name for each in described_intrinsics(product.form) for name in each.chips}
    return product.form.kind == "scaled" and chip.name not in having


def dequantised(product: DescribedProduct, chip: Architecture) -> PrimFunc:
    """The function with its scaled product as one of bfloat16, which blocks before it compute.

    That is exact for all values that bfloat16 has: below 2^-126 it has fewer bits, which are cut
    off, and from 2^128 on it is infinite.
    """
    function, nest = product.function, product.nest
    taken = block_names(function)
    *lead, i, j, k = nest.block.iter_vars
    store = nest.store
    before: list[Stmt] = []
    values: list[Expr] = []
    new = []
    for name, axis in zip("AB", (i, j), strict=True):
        own = [*lead, axis, k]
        buffer, places = buffer_of(unique(f"{name}_values", taken), own, VALUE)
        value = _cut(_value(product, name, own))
        before.append(element_wise(str(buffer.name), own, buffer, places, value))
        values.append(tirx.BufferLoad(buffer, places).astype("float32"))
        new.append(buffer)
    so_far = tirx.BufferLoad(store.buffer, list(store.indices))
    body = tirx.BufferStore(store.buffer, so_far + values[0] * values[1], list(store.indices))
    axes = list(nest.block.iter_vars)
    block = block_of(nest.name, axes, body, nest.block.init, nest.block.annotations)
    realize = SBlockRealize(list(nest.realize.iter_values), True, block)
    whole = replaced(function, nest, [*before, again(nest.loops, realize)], new)
    types = " and ".join(dict.fromkeys(product.form.types))
    said = (
        f"{chip.name} has no scaled instructions for {types}:"
        f" A and B become {VALUE} on their way into the LDS"
    )
    return whole.with_attr(REMARK, said)


def _value(product: DescribedProduct, name: str, axes: list[IterVar]) -> Expr:
    """An element times its scale, as float32."""
    octets, scales = product.reads[name], product.reads[f"SCALE_{name}"]
    *rows, k = (axis.var for axis in axes)
    scale = tirx.BufferLoad(scales, [*rows, k // group_of(product.form.intrinsic)])
    dtype = ELEMENT_TYPES[product.form.types["AB".index(name)]]
    if dtype.bits == 8:
        element = tirx.reinterpret(dtype.name, tirx.BufferLoad(octets, [*rows, k])).astype(SUM)
    else:
        element = _number(dtype, _code(octets, rows, k, dtype.bits))
    return element * tirx.reinterpret(SCALE, scale).astype(SUM)


def _cut(value: Expr) -> Expr:
    """The bfloat16 whose bits are the upper half of a float32's: no rounding, since it is exact."""
    upper = tirx.reinterpret("uint32", value) >> tirx.const(16, "uint32")
    return tirx.reinterpret(VALUE, upper.astype("uint16"))


def _code(octets: Buffer, rows: list[Var], k: Var, bits: int) -> Expr:
    """The bits of an element that lies packed among others, from the lowest bit up, as int32."""
    count = lcm(bits, 8) // bits  # elements of some whole bytes
    size = count * bits // 8
    first = k // count * size
    whole: Expr = tirx.const(0, "int32")
    for byte in range(size):
        whole |= tirx.BufferLoad(octets, [*rows, first + byte]).astype("int32") << 8 * byte
    code: Expr = whole >> k % count * bits & (1 << bits) - 1
    return code


def _number(dtype: ElementType, code: Expr) -> Expr:
    """The float32 of a code: its fields in those of float32, which has another bias."""
    fraction, bias = _FIELDS[dtype.name]
    magnitude = code & (1 << dtype.bits - 1) - 1
    sign = code >> dtype.bits - 1 << 31
    number = tirx.reinterpret(SUM, sign | magnitude << _FRACTION - fraction)
    return number * tirx.const(2.0 ** (_BIAS - bias), SUM)
