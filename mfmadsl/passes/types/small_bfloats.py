"""bfloat16 of small integers, such as weights that a kernel dequantises, without roundings that
change nothing.

An integer of up to 256 is a bfloat16, and so is a difference of two of them that is no larger. All
of it is computed in float32, as other bfloat16 is, but only what is multiplied next is rounded.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx
from tvm.tirx import Expr, PrimFunc

from mfmadsl.model import Architecture
from mfmadsl.passes.tir.device import device
from mfmadsl.passes.tir.rewrite import Computing, dtype_of, lanes_of, rewrite
from mfmadsl.passes.types.small_integers import most_of

_LARGEST = 256  # of the integers up to which bfloat16 has all
_BYTE = 128  # of an int8 the largest magnitude


@dataclass(frozen=True)
class _Exact:
    """An expression of bfloat16, the integer that it is in float32, and between which that is."""

    node: Expr
    value: Expr
    least: float
    most: float


def small_bfloats(function: PrimFunc, chip: Architecture) -> PrimFunc:
    """The function with small integers in bfloat16 computed in float32 up to a product."""
    made: list[_Exact] = []

    def known(expression: Expr) -> _Exact | None:
        return next((each for each in made if each.node.same_as(expression)), None)

    def exact(value: Expr, least: float, most: float) -> Expr:
        made.append(_Exact(value.astype("bfloat16"), value, least, most))
        return made[-1].node

    def computes(expression: Computing) -> bool:
        if isinstance(expression, tirx.Cast):
            return _range(expression) is not None or (
                dtype_of(expression) == "float32" and known(expression.value) is not None
            )
        if isinstance(expression, tirx.Add | tirx.Sub):
            return known(expression.a) is not None
        return isinstance(expression, tirx.Mul) and any(map(known, (expression.a, expression.b)))

    def computed(expression: Computing) -> Expr:
        if isinstance(expression, tirx.Cast):
            before, ends = known(expression.value), _range(expression)
            if ends is not None:
                return exact(expression.value.astype("float32"), *ends)
            return expression if before is None else before.value
        assert isinstance(expression, tirx.Add | tirx.Sub | tirx.Mul)
        sides = [known(side) for side in (expression.a, expression.b)]
        if isinstance(expression, tirx.Mul):
            a, b = (
                side.astype("float32") if found is None else found.value
                for side, found in zip((expression.a, expression.b), sides, strict=True)
            )
            return _rounded(a * b, chip)
        first, second = sides[0], sides[1] or _number(expression.b)
        if first is None or second is None:
            return expression
        if isinstance(expression, tirx.Add):
            value = first.value + second.value
            least, most = first.least + second.least, first.most + second.most
        else:
            value = first.value - second.value
            least, most = first.least - second.most, first.most - second.least
        return exact(value, least, most) if -_LARGEST <= least <= most <= _LARGEST else expression

    return rewrite(function, computes, computed)


def _range(cast: tirx.Cast) -> tuple[int, int] | None:
    """Between which the integer is that a cast makes a bfloat16; None if it may be larger than
    those that are exact, or is no integer."""
    if dtype_of(cast) != "bfloat16" or lanes_of(cast) > 1:
        return None
    if dtype_of(cast.value) == "int8":
        return -_BYTE, _BYTE - 1
    most = most_of(cast.value)
    return (0, most) if most is not None and most <= _LARGEST else None


def _number(expression: Expr) -> _Exact | None:
    """A constant, if it is one of the integers that are exact."""
    number = float(expression.value) if isinstance(expression, tirx.FloatImm) else 0.5
    if not number.is_integer() or abs(number) > _LARGEST:
        return None
    return _Exact(expression, tirx.const(number, "float32"), number, number)


def _rounded(product: Expr, chip: Architecture) -> Expr:
    """A product of an integer and a bfloat16, rounded.

    The bits of a NaN are those of the factor: rounding up does not change which number it is.
    """
    if chip.rounds_to_bfloat:
        return product.astype("bfloat16")
    bits = device("int32", "soft.bits.bfloat16.of_product", product)
    return tirx.reinterpret("bfloat16", bits.astype("uint16"))
