"""Functions of floats, without a device library.

What LLVM's AMDGPU backend expands by itself is called; the rest is written out, in
`backend/gpu/math_functions.ll`. Functions of float16 other than roundings and roots are those of
float32, rounded once more.

The largest errors of float32 against float64, in units in the last place (ULP), denormal numbers
included, as emulated; a chip's `exp2`, `log2`, `sqrt` and `rsq`, which these start from, may be one
unit off themselves. Those of float16 are 0.501.

| function | ULP |
| --- | --- |
| sqrt, rsqrt, pow, sin, cos, and x ** 2 | 0.5 |
| exp2, log2 | 0.75 |
| erf | 0.95 |
| exp, exp10 | 1.0 |
| log, log10 | 1.2 |
| x ** 3, tanh | 1.5 |
| x ** 4 | 2.0 |
| sigmoid | 2.5 |

`exp` overflows to infinity and underflows through denormals to 0; `log` takes denormals. `round` is
TVM's: halves to even. `pow` is C's: a negative number has powers with whole exponents, others are
NaN; with a constant exponent of 2, 3 or 4 it is a product. `sin` and `cos` of numbers from 2^50 on
are NaN: such a number is known to millions of turns only. Of NaN and a number, `max` and `min` are
the number.
"""

from __future__ import annotations

from typing import TypeGuard

import tvm
from tvm import tirx
from tvm.target.codegen import llvm_lookup_intrinsic_id
from tvm.tirx import Expr, PrimFunc

from mfmadsl.passes.tir.device import called, device, intrinsic
from mfmadsl.passes.tir.error import LoweringError
from mfmadsl.passes.tir.rewrite import Computing, dtype_of, rewrite, with_body
from mfmadsl.passes.tir.walk import mapped

_EXACT = {"sqrt": "sqrt", "fabs": "fabs", "floor": "floor", "ceil": "ceil", "trunc": "trunc",
          "round": "nearbyint", "nearbyint": "nearbyint", "fma": "fma",
          "copysign": "copysign"}  # fmt: skip
"""LLVM's functions of float16, float32 and float64."""

_EXPANDED = ("exp", "exp2", "exp10", "log", "log2", "log10")
"""LLVM's functions of float32."""

_EXP2 = int(llvm_lookup_intrinsic_id("llvm.exp2"))

_WRITTEN = ("sigmoid", "tanh", "erf", "rsqrt", "pow", "sin", "cos")
"""Device functions of float32."""

_FLOATS = ("float16", "float32", "float64")

_TESTS = {"isnan": 0x003, "isinf": 0x204, "isfinite": 0x1F8}
"""The classes of numbers that LLVM's `is.fpclass` finds."""

_MISSING = ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cosh", "fmod", "hypot",
            "ldexp", "log1p", "nextafter", "sinh", "tan")  # fmt: skip

FUNCTIONS = frozenset((*_EXACT, *_EXPANDED, *_WRITTEN, *_TESTS, *_MISSING))
"""TVM's functions of floats."""


def expand_functions(function: PrimFunc) -> PrimFunc:
    """The function with its calls of functions of floats expanded, and `!=` of floats true of NaN.

    Raises LoweringError for a function that is none of the above, and for vectors.
    """
    return rewrite(function, _computes, _computed)


def _computes(expression: Computing) -> bool:
    if isinstance(expression, tirx.Cast):
        return dtype_of(expression) == "float16" and _is_exp2(expression.value)
    if isinstance(expression, tirx.NE):
        return dtype_of(expression.a) in _FLOATS
    return isinstance(expression, tvm.ir.Call) and called(expression) in FUNCTIONS


def _computed(expression: Computing) -> Expr:
    if isinstance(expression, tirx.Cast):
        return _as_float16(expression.value)
    if isinstance(expression, tirx.NE):
        # TVM's code for it is false of NaN, and it would make it of the negation of `==`.
        equal = tirx.EQ(expression.a, expression.b)
        return tirx.Select(equal, tirx.const(False, "bool"), tirx.const(True, "bool"))
    assert isinstance(expression, tvm.ir.Call)
    return expanded(called(expression), dtype_of(expression), list(expression.args))


def prefer_numbers(function: PrimFunc) -> PrimFunc:
    """The function with `max` and `min` of floats by instructions that prefer a number to NaN.

    TVM's code for them is a comparison, which is false of NaN, and a selection: the second operand
    of it. They may be those of vectors.
    """

    def chosen(expression: tirx.Max | tirx.Min) -> Expr:
        if dtype_of(expression) not in _FLOATS:
            return expression
        name = "llvm.maxnum" if isinstance(expression, tirx.Max) else "llvm.minnum"
        return intrinsic(str(expression.ty.dtype), name, expression.a, expression.b)

    body = mapped(function.body, ((tirx.Max, tirx.Min), chosen))
    return with_body(function, body)


def expanded(name: str, dtype: str, arguments: list[Expr]) -> Expr:
    """A call of a function of scalars, as what becomes machine code.

    Raises LoweringError if there is no such function of `dtype`.
    """
    if name in _TESTS:
        classes = tirx.const(_TESTS[name], "int32")
        return intrinsic("bool", "llvm.is.fpclass", arguments[0], classes)
    if name in _EXACT and dtype in _FLOATS:
        return intrinsic(dtype, f"llvm.{_EXACT[name]}", *arguments)
    if name in (*_EXPANDED, *_WRITTEN) and dtype in ("float16", "float32"):
        value = _of_float32(name, [a.astype("float32") for a in arguments])
        return _as_float16(value) if dtype == "float16" else value
    raise LoweringError(
        f"`{name}` of {dtype} is none of the functions that a kernel can call: express it by "
        f"{', '.join((*_EXPANDED, *_WRITTEN))} of float32 or float16, or compute it in another "
        "module"
    )


def _of_float32(name: str, arguments: list[Expr]) -> Expr:
    if name in _EXPANDED:
        return intrinsic("float32", f"llvm.{name}", *arguments)
    if name == "pow" and (times := _whole(arguments[1])) in (2, 3, 4):
        return device("float32", f"pow.{times}", arguments[0])
    return device("float32", name, *arguments)


def _as_float16(value: Expr) -> Expr:
    """A value of float32, rounded.

    The chip's own `exp2` gives 0 in place of denormal numbers, which are 0 as float16 anyway: it
    needs none of LLVM's five instructions around it.
    """
    if _is_exp2(value):
        value = intrinsic("float32", "llvm.amdgcn.exp2.f32", value.args[1])
    return value.astype("float16")


def _is_exp2(expression: Expr) -> TypeGuard[tvm.ir.Call]:
    """Whether it is `exp2` of a float32, as LLVM's."""
    if not isinstance(expression, tvm.ir.Call) or dtype_of(expression) != "float32":
        return False
    if called(expression) != "call_llvm_pure_intrin":
        return False
    return int(expression.args[0]) == _EXP2


def _whole(exponent: Expr) -> int | None:
    """A whole number that is known here."""
    while isinstance(exponent, tirx.Cast):
        exponent = exponent.value
    if not isinstance(exponent, tirx.FloatImm) or not float(exponent.value).is_integer():
        return None
    return int(exponent.value)
