"""bfloat16 of small integers, such as weights that a kernel dequantises, without roundings that
change nothing.

An integer of up to 256 is a bfloat16, and so is a difference of two of them that is no larger, or a
half of one. All of it is computed in float32, as other bfloat16 is, but only what is multiplied
next is rounded, and not by a power of two. Fields of a word, such as weights of four bits, become
float32 by way of bytes: one instruction takes a byte from wherever in a word it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from tvm import tirx
from tvm.ir import Call
from tvm.sym import Analyzer
from tvm.tirx import Expr, PrimFunc

from mfmadsl.model import Architecture
from mfmadsl.passes.tir.bounds import analyzer_of
from mfmadsl.passes.tir.device import device, device_function
from mfmadsl.passes.tir.expression import bits_of, field_of
from mfmadsl.passes.tir.rewrite import Computing, dtype_of, lanes_of, rewrite
from mfmadsl.passes.types.small_floats import ELEMENT
from mfmadsl.passes.types.small_integers import most_of

_LARGEST = 256  # of the integers up to which bfloat16 has all
_BYTE = 128  # of an int8 the largest magnitude
_LARGEST_ELEMENT = 6.0  # of E2M1
_POWER = "float8_e8m0fnu"
_OCTET = 8  # bits
_EACH_OCTET = 0x01010101


@dataclass(frozen=True)
class _Exact:
    """An expression of bfloat16, the multiple of `unit` that it is in float32, and between which
    that is."""

    node: Expr
    value: Expr
    least: float
    most: float
    unit: float = 1.0


def small_bfloats(function: PrimFunc, chip: Architecture) -> PrimFunc:
    """The function with small integers in bfloat16 computed in float32 up to a product."""
    made: list[_Exact] = []
    analyzer = analyzer_of(function)

    def known(expression: Expr) -> _Exact | None:
        return next((each for each in made if each.node.same_as(expression)), None)

    def exact(value: Expr, least: float, most: float, unit: float = 1.0) -> Expr:
        made.append(_Exact(value.astype("bfloat16"), value, least, most, unit))
        return made[-1].node

    def computes(expression: Computing) -> bool:
        if isinstance(expression, tirx.Cast):
            if _range(expression) is not None or _is_element(expression):
                return True
            return dtype_of(expression) == "float32" and known(expression.value) is not None
        if isinstance(expression, tirx.Add | tirx.Sub):
            return known(expression.a) is not None
        return isinstance(expression, tirx.Mul) and any(map(known, (expression.a, expression.b)))

    def computed(expression: Computing) -> Expr:
        if isinstance(expression, tirx.Cast):
            before, ends = known(expression.value), _range(expression)
            if ends is not None:
                return exact(_converted(expression.value, analyzer), *ends)
            if before is None:
                return exact(expression.value, -_LARGEST_ELEMENT, _LARGEST_ELEMENT, 0.5)
            return before.value
        assert isinstance(expression, tirx.Add | tirx.Sub | tirx.Mul)
        sides = [known(side) for side in (expression.a, expression.b)]
        if isinstance(expression, tirx.Mul):
            is_exact = _is_power(expression.a) or _is_power(expression.b)
            a, b = (
                side.astype("float32") if found is None else found.value
                for side, found in zip((expression.a, expression.b), sides, strict=True)
            )
            return _rounded(*((b, a) if sides[0] is None else (a, b)), is_exact, chip)
        first, second = sides[0], sides[1] or _number(expression.b)
        if first is None or second is None:
            return expression
        if isinstance(expression, tirx.Add):
            value = first.value + second.value
            least, most = first.least + second.least, first.most + second.most
        else:
            value = first.value - second.value
            least, most = first.least - second.most, first.most - second.least
        unit = min(first.unit, second.unit)
        if not -_LARGEST * unit <= least <= most <= _LARGEST * unit:
            return expression
        return exact(value, least, most, unit)

    return rewrite(function, computes, computed)


def _converted(value: Expr, analyzer: Analyzer) -> Expr:
    """The float32 of a small integer: of a field that lies in a byte of a word, by that byte."""
    whole = value.astype("float32")
    found = field_of(value)
    if found is None or dtype_of(value) not in ("int32", "uint32"):
        return whole
    word, shift, mask = found
    if mask & mask + 1 or not 0 < mask < 1 << _OCTET:
        return whole
    bound, steps = analyzer.const_int_bound(shift), analyzer.modular_set(shift)
    step = gcd(int(steps.coeff), _OCTET)
    last = int(steps.base) % step + _OCTET - step  # of the places in a byte where it may start
    ends = bound.min_value >= 0 and bound.max_value + mask.bit_length() <= bits_of("int32")
    if not ends or last + mask.bit_length() > _OCTET:
        return whole
    octets = tirx.const(mask * _EACH_OCTET, "int32")
    return device("float32", "field", word.astype("int32"), shift.astype("int32"), octets)


def _range(cast: tirx.Cast) -> tuple[int, int] | None:
    """Between which the integer is that a cast makes a bfloat16; None if it may be larger than
    those that are exact, or is no integer."""
    if dtype_of(cast) != "bfloat16" or lanes_of(cast) > 1:
        return None
    if dtype_of(cast.value) == "int8":
        return -_BYTE, _BYTE - 1
    most = most_of(cast.value)
    return (0, most) if most is not None and most <= _LARGEST else None


def _is_element(cast: tirx.Cast) -> bool:
    """Whether it makes a bfloat16 of an element of E2M1, which is a multiple of a half."""
    if dtype_of(cast) != "bfloat16" or not isinstance(cast.value, Call):
        return False
    return device_function(cast.value).removeprefix("soft.") == f"{ELEMENT}.float32"


def _is_power(factor: Expr) -> bool:
    """Whether a bfloat16 is a power of two, 2^-127 at least, or NaN: such a factor leaves any of
    the exact numbers exact, or infinite, or makes it NaN."""
    while isinstance(factor, tirx.Cast) and dtype_of(factor) in ("bfloat16", "float32"):
        factor = factor.value
    return dtype_of(factor) == _POWER


def _number(expression: Expr) -> _Exact | None:
    """A constant, if it is one of the integers that are exact."""
    number = float(expression.value) if isinstance(expression, tirx.FloatImm) else 0.5
    if not number.is_integer() or abs(number) > _LARGEST:
        return None
    return _Exact(expression, tirx.const(number, "float32"), number, number)


def _rounded(number: Expr, factor: Expr, is_exact: bool, chip: Architecture) -> Expr:
    """The product of an exact number and a bfloat16, rounded if it has to be.

    The bits of a NaN are those of the factor: rounding up does not change which number it is.
    Chips that compute as many doubles as floats compute two floats at once, too: there the product
    is rounded by floats.
    """
    product = number * factor
    if chip.rounds_to_bfloat:
        return product.astype("bfloat16")
    if chip.wide_slots == 1 and not is_exact:
        bits = device("int32", "soft.bits.bfloat16.of_factors", number, factor)
    else:
        kind = "exact" if is_exact else "product"
        bits = device("int32", f"soft.bits.bfloat16.of_{kind}", product)
    return tirx.reinterpret("bfloat16", bits.astype("uint16"))
