"""Elements of float4_e2m1fn that a kernel makes numbers of by bits, such as weights of four bits.

Whatever makes the sixteen numbers of a field of four bits (OCP Microscaling Formats v1.0, 5.3.3) is
replaced, two elements of a byte at once: by one instruction, or with few for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt
import tvm_ffi
from tvm import tirx
from tvm.ir import Call
from tvm.sym import Analyzer
from tvm.tirx import Expr, PrimFunc

from mfmadsl.model import ELEMENT_TYPES, Architecture
from mfmadsl.model.numpy_type import numpy_type
from mfmadsl.passes.tir.bounds import analyzer_of
from mfmadsl.passes.tir.device import called, device
from mfmadsl.passes.tir.expression import bits_of, constant, field_of
from mfmadsl.passes.tir.rewrite import Computing, dtype_of, lanes_of, rewrite

_TYPE = "float4_e2m1fn"
ELEMENT = f"element.{_TYPE}"
"""The device functions of an element of a word are called so, and by what they make of it."""

_BITS = 4
_CODES = np.arange(1 << _BITS)
_NUMBERS = _CODES.astype(np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64)
_ONE = 2  # the code of 1
_TYPES = "float16", "bfloat16", "float32"
_INTEGERS = "int8", "uint8", "int16", "uint16", "int32", "uint32"
_NUMPY = {
    tirx.BitwiseAnd: np.bitwise_and, tirx.BitwiseOr: np.bitwise_or,
    tirx.BitwiseXor: np.bitwise_xor, tirx.LShift: np.left_shift, tirx.RShift: np.right_shift,
}  # fmt: skip
_Bitwise: TypeAlias = tirx.BitwiseAnd | tirx.BitwiseOr | tirx.BitwiseXor | tirx.LShift | tirx.RShift


@dataclass(frozen=True)
class _Field:
    """Four bits of an integer: `word >> shift & 15`."""

    word: Expr
    shift: Expr

    def same_as(self, other: _Field) -> bool:
        pairs = (self.word, other.word), (self.shift, other.shift)
        return all(tvm_ffi.structural_equal(a, b) for a, b in pairs)


@dataclass(frozen=True)
class _Table:
    """What an expression is for each of the sixteen codes of a field; of a constant, no field."""

    field: _Field | None
    values: npt.NDArray[np.generic]


@dataclass(frozen=True)
class _Element:
    """An expression that is an element times a power of two, and the element itself."""

    node: Expr
    element: Expr
    factor: float


def small_floats(function: PrimFunc, chip: Architecture) -> PrimFunc:
    """The function with elements of E2M1 that are put together of bits made by instructions."""
    made: list[_Element] = []
    analyzer = analyzer_of(function)

    def before(expression: Expr) -> _Element | None:
        return next((each for each in made if each.node.same_as(expression)), None)

    def computes(expression: Computing) -> bool:
        if isinstance(expression, tirx.Mul):
            return isinstance(expression.b, tirx.FloatImm) and before(expression.a) is not None
        return is_made_of_bits(expression, analyzer)

    def times(element: Expr, factor: float, dtype: str) -> Expr:
        node = element if factor == 1 else element * tirx.const(factor, dtype)
        made.append(_Element(node, element, factor))
        return node

    def computed(expression: Computing) -> Expr:
        dtype = dtype_of(expression)
        if isinstance(expression, tirx.Mul):
            found = before(expression.a)
            assert found is not None
            assert isinstance(expression.b, tirx.FloatImm)
            factor = found.factor * float(expression.b.value)
            return times(found.element, factor, dtype) if factor == 1 else expression
        assert isinstance(expression, Call)
        scaled = _scaled_field(expression, analyzer)
        assert scaled is not None
        field, factor = scaled
        return times(_element(field, dtype, chip), factor, dtype)

    return rewrite(function, computes, computed)


def is_made_of_bits(expression: Expr, analyzer: Analyzer) -> bool:
    """Whether an expression is an element of E2M1 that is put together of bits."""
    return (
        isinstance(expression, Call)
        and called(expression) == "reinterpret"
        and dtype_of(expression) in _TYPES
        and lanes_of(expression) == 1
        and _scaled_field(expression, analyzer) is not None
    )


def _element(field: _Field, dtype: str, chip: Architecture) -> Expr:
    """The number of a field. bfloat16 has all of them, which are made in float32."""
    soft = "" if chip.name in ELEMENT_TYPES[_TYPE].chips else "soft."
    to = "float32" if dtype == "bfloat16" else dtype
    arguments = field.word.astype("int32"), field.shift.astype("int32")
    value = device(to, f"{soft}{ELEMENT}.{to}", *arguments)
    return value if to == dtype else value.astype(dtype)


def _scaled_field(bits: Call, analyzer: Analyzer) -> tuple[_Field, float] | None:
    """The field that a number is made of by its bits, and the power of two that it has too much."""
    table = _table(bits.args[0], analyzer)
    dtype = numpy_type(dtype_of(bits))
    if table is None or table.field is None or table.values.dtype.itemsize != dtype.itemsize:
        return None
    numbers = table.values.view(dtype).astype(np.float64)
    factor = float(numbers[_ONE])
    if not np.isfinite(factor) or factor <= 0 or np.frexp(factor)[0] != 0.5:
        return None
    wanted = _NUMBERS * factor
    same = np.array_equal(numbers, wanted) and np.array_equal(*map(np.signbit, (numbers, wanted)))
    return (table.field, factor) if same else None


def _table(expression: Expr, analyzer: Analyzer) -> _Table | None:
    """What an expression of bits is for each code of the one field that is in it."""
    dtype = dtype_of(expression)
    if dtype not in _INTEGERS or lanes_of(expression) > 1:
        return None
    if (number := constant(expression)) is not None:
        return _Table(None, np.asarray(number).astype(dtype))
    if isinstance(expression, tirx.Cast):
        inner = _table(expression.value, analyzer)
        return None if inner is None else _Table(inner.field, inner.values.astype(dtype))
    if not isinstance(expression, _Bitwise):
        return None
    first, second = (_table(side, analyzer) for side in (expression.a, expression.b))
    if first is None or second is None:
        field = _field(expression, analyzer)
        return None if field is None else _Table(field, _CODES.astype(dtype))
    fields = [side.field for side in (first, second) if side.field is not None]
    if len(fields) > 1 and not fields[0].same_as(fields[1]):
        return None
    if isinstance(expression, tirx.LShift | tirx.RShift) and not _moves(second, dtype):
        return None
    values = _NUMPY[type(expression)](first.values, second.values).astype(dtype)
    return _Table(fields[0] if fields else None, values)


def _moves(shift: _Table, dtype: str) -> bool:
    """Whether a shift is by a number of bits that there are."""
    return shift.field is None and 0 <= int(shift.values) < bits_of(dtype)


def _field(expression: Expr, analyzer: Analyzer) -> _Field | None:
    """The field of four bits that an expression takes from a word, where it is a half of a byte."""
    found = field_of(expression)
    if found is None or found[2] != (1 << _BITS) - 1:
        return None
    word, shift, _ = found
    bits = bits_of(dtype_of(expression))
    while isinstance(shift, tirx.Cast) and dtype_of(shift.value) in ("int32", "int64"):
        shift = shift.value
    bound, steps = analyzer.const_int_bound(shift), analyzer.modular_set(shift)
    inside = bound.min_value >= 0 and bound.max_value <= bits - _BITS
    whole = steps.coeff % _BITS == 0 and steps.base % _BITS == 0
    return _Field(word, shift) if inside and whole else None
