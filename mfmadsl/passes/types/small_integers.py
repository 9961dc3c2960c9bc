"""Small integers become float16 by their bits, such as weights that a kernel dequantises.

The float16 with the bits 0x6400 | u is 1024 + u for u below 1024. One instruction takes 1024 from
two of them, and what is subtracted next besides, where conversions take two instructions for each,
by way of float32. All of it is exact.
"""

from __future__ import annotations

from tvm import tirx
from tvm.tirx import Expr, PrimFunc

from mfmadsl.passes.tir.expression import bits_of, constant
from mfmadsl.passes.tir.rewrite import Computing, dtype_of, lanes_of, rewrite

_BASE, _BITS = 1024, 0x6400  # a float16 whose last bit is 1, and its bits
_SIGN = 0x80  # of int8
_HALF = 16  # bits


def small_integers(function: PrimFunc) -> PrimFunc:
    """The function with its conversions of int8 and of integers below 1024 to float16 made of
    bits."""
    made: list[tirx.Sub] = []

    def converted(expression: Expr) -> tirx.Sub | None:
        return next((each for each in made if each.same_as(expression)), None)

    def computes(expression: Computing) -> bool:
        if isinstance(expression, tirx.Add | tirx.Sub):
            if not isinstance(expression.b, tirx.FloatImm):
                return False
            return _is_small(expression.a) or converted(expression.a) is not None
        return _is_small(expression)

    def computed(expression: Computing) -> Expr:
        if isinstance(expression, tirx.Cast):
            made.append(_of_bits(expression.value))
            return made[-1]
        assert isinstance(expression, tirx.Add | tirx.Sub)
        sign = 1 if isinstance(expression, tirx.Sub) else -1
        assert isinstance(expression.b, tirx.FloatImm)
        number, before = sign * float(expression.b.value), converted(expression.a)
        if before is None or not number.is_integer() or abs(number) >= _BASE - _SIGN:
            return expression
        assert isinstance(before.b, tirx.FloatImm)
        less = float(before.b.value) + number
        return tirx.Sub(before.a, tirx.const(less, "float16"))

    return rewrite(function, computes, computed)


def _is_small(cast: Expr) -> bool:
    """Whether it is a cast that makes a float16 of an int8, or of an integer that is surely no less
    than 0 and less than 1024."""
    if not isinstance(cast, tirx.Cast) or dtype_of(cast) != "float16" or lanes_of(cast) > 1:
        return False
    return dtype_of(cast.value) == "int8" or _is_field(cast.value)


def _is_field(value: Expr) -> bool:
    """Whether it has ten bits at most, whatever it is made of.

    TVM's bounds of an expression are no help: they take sums and casts that wrap around for ones
    that do not.
    """
    dtype = dtype_of(value)
    if dtype == "uint8":
        return True
    if not dtype.startswith(("int", "uint")) or bits_of(dtype) < _HALF:
        return False
    if isinstance(value, tirx.BitwiseAnd):
        mask = constant(value.b)
        return mask is not None and 0 <= mask < _BASE
    if isinstance(value, tirx.RShift) and dtype.startswith("uint"):
        shift = constant(value.b)
        return shift is not None and bits_of(dtype) - 10 <= shift < bits_of(dtype)
    return isinstance(value, tirx.Cast) and _is_field(value.value)


def _of_bits(value: Expr) -> tirx.Sub:
    """The float16 that a small integer is."""
    half = tirx.const(_BITS, "uint16")
    base = _BASE
    if (field := _field(value)) is not None:
        bits = field
    elif dtype_of(value) == "int8":
        moved = tirx.bitwise_xor(tirx.reinterpret("uint8", value), tirx.const(_SIGN, "uint8"))
        bits, base = tirx.Cast("uint16", moved) | half, _BASE + _SIGN
    else:
        bits = tirx.Cast("uint16", value) | half
    return tirx.Sub(tirx.reinterpret("float16", bits), tirx.const(float(base), "float16"))


def _field(value: Expr) -> Expr | None:
    """The bits of a float16 of a field of a word, `word >> shift & mask`, and of what lies 16 bits
    away at once: both of them are the same expression but for which half is taken."""
    if not isinstance(value, tirx.BitwiseAnd):
        return None
    mask = constant(value.b)
    if mask is None or dtype_of(value) != "uint32":
        return None
    word, shift = value.a, tirx.const(0, "uint32")
    if isinstance(value.a, tirx.RShift):
        word, shift = value.a.a, value.a.b
    both = tirx.const(mask | mask << _HALF, "uint32")
    halves = tirx.const(_BITS | _BITS << _HALF, "uint32")
    length = tirx.const(_HALF, str(shift.ty.dtype))
    within = tirx.floormod(shift, length)
    pair = tirx.bitwise_or(tirx.bitwise_and(tirx.shift_right(word, within), both), halves)
    return tirx.Cast("uint16", tirx.shift_right(pair, shift - within))
