"""Small integers become float16 by their bits, such as weights that a kernel dequantises.

The float16 with the bits 0x6400 | u is 1024 + u for u below 1024. One instruction takes 1024 from
two of them, and what is subtracted next besides, where conversions take two instructions for each,
by way of float32. Where a zero point is such a number, too, nothing has to be taken from either.
All of it is exact.
"""

from __future__ import annotations

from tvm import tirx
from tvm.sym import Analyzer
from tvm.tirx import Expr, PrimFunc

from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.bounds import analyzer_of
from mfmadsl.passes.tir.expression import bits_of, constant, field_of, i32
from mfmadsl.passes.tir.rewrite import Computing, dtype_of, lanes_of, rewrite

BASE = 1024
"""A float16 whose last bit is 1."""

BITS = 0x6400
"""The bits of that."""

OCTET = "octet"
"""The device function of a byte and of bits that it turns around: its float16."""

_SIGN = 0x80  # of int8
_HALF = 16  # bits


def small_integers(function: PrimFunc) -> PrimFunc:
    """The function with its conversions of int8 and of integers below 1024 to float16 made of
    bits."""
    made: list[tirx.Sub] = []
    analyzer = analyzer_of(function)

    def converted(expression: Expr) -> tirx.Sub | None:
        return next((each for each in made if each.same_as(expression)), None)

    def computes(expression: Computing) -> bool:
        if isinstance(expression, tirx.Sub) and not isinstance(expression.b, tirx.FloatImm):
            return converted(expression.a) is not None and converted(expression.b) is not None
        if isinstance(expression, tirx.Add | tirx.Sub):
            if not isinstance(expression.b, tirx.FloatImm):
                return False
            return _is_small(expression.a) or converted(expression.a) is not None
        return _is_small(expression)

    def computed(expression: Computing) -> Expr:
        if isinstance(expression, tirx.Cast):
            made.append(_of_bits(expression.value, analyzer))
            return made[-1]
        assert isinstance(expression, tirx.Add | tirx.Sub)
        if not isinstance(expression.b, tirx.FloatImm):
            return _difference(expression, converted(expression.a), converted(expression.b))
        sign = 1 if isinstance(expression, tirx.Sub) else -1
        assert isinstance(expression.b, tirx.FloatImm)
        number, before = sign * float(expression.b.value), converted(expression.a)
        if before is None or not number.is_integer() or abs(number) >= BASE - _SIGN:
            return expression
        less = _too_much(before) + number
        return tirx.Sub(before.a, tirx.const(less, "float16"))

    return rewrite(function, computes, computed)


def _difference(whole: Expr, first: tirx.Sub | None, second: tirx.Sub | None) -> Expr:
    """The difference of two small integers, of which both have the same number too much.

    It is a sum with a negative number: LLVM has an instruction for two sums, and none for two
    differences.
    """
    if first is None or second is None or _too_much(first) != _too_much(second):
        return whole
    return first.a + device.device("float16", "opposite", second.a)


def _too_much(made: tirx.Sub) -> float:
    """What is subtracted from the number that has the bits."""
    assert isinstance(made.b, tirx.FloatImm)
    return float(made.b.value)


def _is_small(cast: Expr) -> bool:
    """Whether it is a cast that makes a float16 of an int8, or of an integer that is surely no less
    than 0 and less than 1024."""
    if not isinstance(cast, tirx.Cast) or dtype_of(cast) != "float16" or lanes_of(cast) > 1:
        return False
    return dtype_of(cast.value) == "int8" or _is_field(cast.value)


def _is_field(value: Expr) -> bool:
    """Whether it has ten bits at most, whatever it is made of."""
    most = most_of(value)
    return most is not None and most < BASE


def most_of(value: Expr) -> int | None:
    """The most that an integer of few bits may be, which is not negative; None of any other.

    TVM's bounds of an expression are no help: they take sums and casts that wrap around for ones
    that do not.
    """
    dtype = dtype_of(value)
    if dtype == "uint8":
        return (1 << bits_of(dtype)) - 1
    if not dtype.startswith(("int", "uint")) or bits_of(dtype) < _HALF:
        return None
    if isinstance(value, tirx.BitwiseAnd):
        mask = constant(value.b)
        return mask if mask is not None and 0 <= mask < BASE else None
    if isinstance(value, tirx.RShift) and dtype.startswith("uint"):
        shift = constant(value.b)
        if shift is None or not bits_of(dtype) - 10 <= shift < bits_of(dtype):
            return None
        return (1 << bits_of(dtype) - shift) - 1
    if isinstance(value, tirx.Add) and (number := constant(value.b)) is not None:
        most = most_of(value.a)
        if most is None or number < 0 or most + number >= BASE:
            return None
        return most + number
    return most_of(value.value) if isinstance(value, tirx.Cast) else None


def _of_bits(value: Expr, analyzer: Analyzer) -> tirx.Sub:
    """The float16 that a small integer is."""
    dtype, base = dtype_of(value), BASE
    if (field := _field(value, analyzer)) is not None:
        made = tirx.reinterpret("float16", field)
    elif dtype in ("int8", "uint8"):
        turned = _SIGN if dtype == "int8" else 0
        octet = tirx.Cast("int32", tirx.reinterpret("uint8", value))
        made, base = device.device("float16", OCTET, octet, i32(BITS | turned)), BASE + turned
    else:
        made = tirx.reinterpret("float16", tirx.Cast("uint16", value) | tirx.const(BITS, "uint16"))
    return tirx.Sub(made, tirx.const(float(base), "float16"))


def _field(value: Expr, analyzer: Analyzer) -> Expr | None:
    """The bits of a float16 of a field of a word, `word >> shift & mask`, and of what lies 16 bits
    away at once: both of them are the same expression but for which half is taken."""
    found, dtype = field_of(value), dtype_of(value)
    if found is None or dtype not in ("uint32", "int32"):
        return None
    word, shift, mask = found
    if dtype == "int32":  # a shift repeats the sign, which the mask has to leave out
        bound = analyzer.const_int_bound(shift)
        if bound.min_value < 0 or bound.max_value + mask.bit_length() > bits_of(dtype):
            return None
        word = tirx.Cast("uint32", word)
    length = tirx.const(_HALF, str(shift.ty.dtype))
    within = tirx.floormod(shift, length)
    down, above = (tirx.Cast("uint32", each) for each in (within, shift - within))
    moved = tirx.Cast("int32", tirx.shift_right(word, down))
    pair = device.masked(moved, mask | mask << _HALF, BITS | BITS << _HALF)
    return tirx.Cast("uint16", tirx.shift_right(tirx.Cast("uint32", pair), above))
