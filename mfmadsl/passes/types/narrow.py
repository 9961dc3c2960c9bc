"""Computing with bfloat16 and eight-bit floats, which the vector ALU does not.

Their values are computed as float32 and rounded after each operation, to nearest, ties to even. The
float32 holds twice the bits of the narrow type and two more, so that a sum, a product, a quotient
or a root is that of the narrow type, correctly rounded. What is too large becomes infinite, or NaN
where the type has no infinity; NaN stays NaN; `min` and `max` choose as those of float32 do.
Casts from other types go through float32, as those of ml_dtypes do. A chip converts eight-bit
floats of its own flavour by one instruction, and others by ten or twenty of integers. Exponents
without a sign (float8_e8m0fnu) round to the nearest power of two, in the middle to the larger.

Loads, stores, selections and reinterpretations stay as they are, since a matrix core takes the
bits; what of them is in no array becomes integers in `bits.py`, at the end of lowering.
"""

from __future__ import annotations

import re
from functools import partial
from typing import get_args

import tvm
from tvm import tirx
from tvm.tirx import Expr, PrimFunc

from mfmadsl.model import ELEMENT_TYPES, Architecture
from mfmadsl.passes.tir.device import device, device_function
from mfmadsl.passes.tir.error import LoweringError
from mfmadsl.passes.tir.rewrite import Binary, Computing, dtype_of, rewrite
from mfmadsl.passes.tir.walk import walk
from mfmadsl.passes.types.bits import BITS
from mfmadsl.passes.types.float32 import Conversions
from mfmadsl.passes.types.reduction import widen_reductions

_NARROW = re.compile(r"float[468]_")
_SCALE = "float8_e8m0fnu"


def narrow_types(function: PrimFunc, chip: Architecture | None = None) -> PrimFunc:
    """The function with what it computes in narrow types computed in float32.

    Without a `chip` all eight-bit floats are converted by instructions. Raises LoweringError for
    vectors, and for floats of at most eight bits that have no conversion here.
    """
    _check_types(function)
    conversions = Conversions(frozenset(BITS), partial(_wide, chip), partial(_narrow, chip))

    def computes(expression: Computing) -> bool:
        return _conversion(expression) != "" or conversions.computes(expression)

    def computed(expression: Computing) -> Expr:
        if isinstance(expression, tvm.ir.Call) and (name := _conversion(expression)):
            return _convert(chip, dtype_of(expression), name, expression.args[1])  # by hand
        return conversions.computed(expression)

    return rewrite(widen_reductions(function), computes, computed)


def _check_types(function: PrimFunc) -> None:
    """Refuse what LLVM would take for integers, or not at all."""
    unknown: list[tuple[str, Expr]] = []

    def check(expression: tirx.Cast | Binary) -> None:
        operand = expression.value if isinstance(expression, tirx.Cast) else expression.a
        for each in (expression, operand):
            if _NARROW.match(dtype := dtype_of(each)) and dtype not in BITS:
                unknown.append((dtype, expression))

    walk(function.body, ((tirx.Cast, *get_args(Binary)), check))
    for dtype, expression in unknown:
        raise LoweringError(
            f"`{expression}`: kernels do not compute with {dtype}; they do with {', '.join(BITS)}"
        )


def _wide(chip: Architecture | None, value: Expr) -> Expr:
    """The float32 that a narrow value is."""
    dtype = dtype_of(value)
    bits = tirx.reinterpret(BITS[dtype], value)
    if dtype == "bfloat16":
        return tirx.reinterpret("float32", bits.astype("uint32") << tirx.const(16, "uint32"))
    return _convert(chip, "float32", f"value.{dtype}", bits.astype("int32"))


def _narrow(chip: Architecture | None, value: Expr, dtype: str) -> Expr:
    """A float32, rounded to a narrow type."""
    bits = _convert(chip, "int32", f"bits.{dtype}", value)
    return tirx.reinterpret(dtype, bits.astype(BITS[dtype]))


def _conversion(call: Expr) -> str:
    """The device function that a call converts a narrow value by, or nothing."""
    name = device_function(call) if isinstance(call, tvm.ir.Call) else ""
    return name if name.startswith(("bits.", "value.")) else ""


def _convert(chip: Architecture | None, to: str, name: str, value: Expr) -> Expr:
    """A call of a device function that converts, by the chip's instruction if it has one."""
    dtype = name.partition(".")[2]
    chips = ELEMENT_TYPES[dtype].chips
    soft = chip is not None and bool(chips) and chip.name not in chips
    soft = soft or dtype == _SCALE  # the matrix cores read it, and no conversion does
    if chip is not None and dtype == "bfloat16":
        soft = not chip.rounds_to_bfloat
    return device(to, f"soft.{name}" if soft else name, value)
