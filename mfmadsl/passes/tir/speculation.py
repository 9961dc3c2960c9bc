"""Expressions that may be computed where their value is not wanted: LLVM calls them speculatable.

Nothing else can tell that they were: no memory is read, no lane asks others, and no division by
zero, which LLVM takes for one that never happens. What is not known is not speculatable.
"""

from __future__ import annotations

from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.target.codegen import llvm_get_intrinsic_name
from tvm.tirx import Expr

from mfmadsl.passes.tir.device import device_function
from mfmadsl.passes.tir.error import NotUnderstoodError
from mfmadsl.passes.tir.expression import (
    constant,
    elements_of,
    name_of,
    scope_of,
)
from mfmadsl.passes.tir.walk import walk

_DIVISIONS = (tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod)

_OPERATIONS = frozenset((
    "reinterpret", "if_then_else", "likely", "large_uint_imm", "vectorlow", "vectorhigh",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right",
    "fabs", "floor", "ceil", "trunc", "round", "nearbyint", "fma", "copysign", "isnan", "isinf",
    "isfinite", "sqrt", "rsqrt", "exp", "exp2", "exp10", "log", "log2", "log10", "sigmoid", "tanh",
    "erf", "pow", "sin", "cos",
))  # fmt: skip
"""TVM's, of numbers alone."""

_FUNCTIONS = frozenset((
    "cos", "erf", "masked", "pow", "pow.2", "pow.3", "pow.4", "rsqrt", "select", "sigmoid", "sin",
    "tanh",
))  # fmt: skip
_FAMILIES = ("bits.", "element.", "pair.", "soft.", "value.")
"""Device functions of numbers alone, by their names or how these begin; others may ask lanes."""

_INTRINSICS = frozenset(("llvm.amdgcn.exp2.f32", "llvm.amdgcn.exp2", "llvm.amdgcn.fmed3"))
"""LLVM's for this chip, of numbers alone: most of the others ask lanes."""

_PURE_INTRINSIC = "call_llvm_pure_intrin"


def is_speculatable(expression: Expr) -> bool:
    """Whether an expression may be computed anywhere, of registers that have a number each."""
    loads: list[TensorLoad] = []
    calls: list[Call] = []
    divisions: list[Expr] = []
    walk(
        expression,
        (TensorLoad, loads.append), (Call, calls.append), (_DIVISIONS, divisions.append),
    )  # fmt: skip
    return (
        all(map(_is_register, loads))
        and all(map(_is_of_numbers, calls))
        and all(map(_never_by_zero, divisions))
    )


def _is_register(load: TensorLoad) -> bool:
    """Whether it is a register that there is, by its number."""
    extents = [constant(extent) for extent in load.source.shape]
    if scope_of(load.source) != "local" or len(extents) != 1 or len(load.indices) != 1:
        return False
    try:
        numbers = elements_of(load.indices[0])
    except NotUnderstoodError:
        return False
    return extents[0] is not None and numbers.start >= 0 and numbers.stop <= extents[0]


def _is_of_numbers(call: Call) -> bool:
    if name := device_function(call):
        return name in _FUNCTIONS or name.startswith(_FAMILIES)
    if name_of(call) == _PURE_INTRINSIC:
        number = constant(call.args[0])
        name = "" if number is None else str(llvm_get_intrinsic_name(number))
        return name in _INTRINSICS or not name.startswith("llvm.amdgcn.")
    return name_of(call) in _OPERATIONS


def _never_by_zero(node: Expr) -> bool:
    assert isinstance(node, _DIVISIONS)
    is_float = str(node.ty.dtype).startswith(("float", "bfloat"))
    return is_float or bool(constant(node.b))
