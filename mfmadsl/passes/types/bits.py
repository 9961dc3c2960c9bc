"""Values of bfloat16 and eight-bit floats that are moved and not computed, as bits.

TVM's passes that store these types as integers know loads, stores and reinterpretations; they leave
the type of a constant, a selection or a variable as it was, beside operands of another one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import tvm
import tvm_ffi
from tvm import tirx
from tvm.tirx import Expr, PrimFunc, Var

from mfmadsl.model.numpy_type import numpy_type
from mfmadsl.passes.tir.device import called
from mfmadsl.passes.tir.rewrite import dtype_of, lanes_of, with_body
from mfmadsl.passes.tir.walk import walk

BITS = {
    "bfloat16": "uint16", "float8_e4m3fnuz": "uint8", "float8_e5m2fnuz": "uint8",
    "float8_e4m3fn": "uint8", "float8_e5m2": "uint8", "float8_e8m0fnu": "uint8",
}  # fmt: skip
"""The narrow types, and the integers that hold their bits."""


def move_bits(function: PrimFunc) -> PrimFunc:
    """The function with constants, selections and variables of narrow types as integers.

    A constant is rounded to nearest, ties to even.
    """
    variables: dict[Var, Var] = {}

    def declare(binding: tirx.Let | tirx.Bind) -> None:
        dtype = dtype_of(binding.var)
        if dtype in BITS:
            variables[binding.var] = tirx.Var(binding.var.name, _integer(binding.var))

    def used(variable: Var, region: tvm_ffi.DefRegionKind) -> Expr:
        if variable not in variables or region != tvm_ffi.DefRegionKind.NONE:
            return variable
        return tirx.reinterpret(str(variable.ty.dtype), variables[variable])

    walk(function.body, ((tirx.Let, tirx.Bind), declare))

    def let(binding: tirx.Let) -> tirx.Let:
        if binding.var not in variables:
            return binding
        return tirx.Let(variables[binding.var], bits_of(binding.value), binding.body)

    def bind(binding: tirx.Bind) -> tirx.Bind:
        if binding.var not in variables:
            return binding
        return tirx.Bind(variables[binding.var], bits_of(binding.value))

    body = tvm_ffi.structural_map(
        function.body,
        [
            (tirx.FloatImm, _constant), ((tirx.Select, tvm.ir.Call), _selection),
            (tirx.Broadcast, _broadcast), (tirx.Let, let), (tirx.Bind, bind),
        ],
        with_def_region_kind=(tirx.Var, used),
    )  # fmt: skip
    return with_body(function, body)


def bits_of(value: Expr) -> Expr:
    """The bits of a narrow value, as an integer."""
    return tirx.reinterpret(_integer(value), value)


def rounded(number: tirx.FloatImm) -> npt.NDArray[np.generic]:
    """A constant of a narrow type, as NumPy's array of no dimensions."""
    return np.asarray(float(number.value), numpy_type(dtype_of(number)))


def _integer(value: Expr) -> str:
    lanes = lanes_of(value)
    return BITS[dtype_of(value)] + (f"x{lanes}" if lanes > 1 else "")


def _constant(number: tirx.FloatImm) -> Expr:
    dtype = dtype_of(number)
    if dtype not in BITS:
        return number
    return tirx.reinterpret(dtype, tirx.const(int(rounded(number).view(BITS[dtype])), BITS[dtype]))


def _selection(expression: tirx.Select | tvm.ir.Call) -> Expr:
    if dtype_of(expression) not in BITS:
        return expression
    dtype = str(expression.ty.dtype)
    if isinstance(expression, tirx.Select):
        yes, no = bits_of(expression.true_value), bits_of(expression.false_value)
        return tirx.reinterpret(dtype, tirx.Select(expression.condition, yes, no))
    if called(expression) == "if_then_else":
        condition, yes, no = expression.args
        chosen = tirx.if_then_else(condition, bits_of(yes), bits_of(no))
        return tirx.reinterpret(dtype, chosen)
    return expression


def _broadcast(expression: tirx.Broadcast) -> Expr:
    if dtype_of(expression) not in BITS:
        return expression
    whole = tirx.Broadcast(bits_of(expression.value), expression.lanes)
    return tirx.reinterpret(str(expression.ty.dtype), whole)
