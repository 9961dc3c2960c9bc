"""What the products of an attention multiply: elements, of a type that has all of their numbers."""

from __future__ import annotations

from tvm import tirx
from tvm.tirx import Expr, IterVar

from mfmadsl.model import EIGHT_BIT_FLOATS
from mfmadsl.passes.tir.expression import choice_of, conjuncts_of
from mfmadsl.schedule.flash_attention.score import conditions_of
from mfmadsl.schedule.product.nest import Nest, is_number, same

_BYTES = ("int8", "uint8", *EIGHT_BIT_FLOATS)
EXACT = {"float16": _BYTES, "bfloat16": _BYTES} | dict.fromkeys(EIGHT_BIT_FLOATS, ())
"""The types that are multiplied, and of what others they have all numbers."""


def multiplied(element: Expr, dtype: str, nest: Nest) -> Expr:
    """An element in the type that is multiplied, if that has all numbers of its own type."""
    own = str(element.ty.dtype)
    if own == dtype:
        return element
    if own not in EXACT[dtype]:
        raise nest.refusal(
            f"multiplies {own}, and the weights are {dtype}: cast the one or the other"
        )
    return tirx.Cast(dtype, element)


def without_float32(value: Expr) -> Expr:
    """The value that is cast to float32, which keeps halves as they are."""
    if isinstance(value, tirx.Cast) and str(value.ty.dtype) == "float32":
        return value.value
    return value


def unguarded(element: Expr, score: Expr, key: IterVar) -> Expr:
    """An element without the condition that a key is before some end, if its score is masked by
    that, too."""
    choice, known = choice_of(element), conditions_of(score)
    if choice is None or not is_number(choice[2], 0):
        return element
    for asked in conjuncts_of(choice[0]):
        before_end = isinstance(asked, tirx.LT) and asked.a.same_as(key.var)
        if not before_end or not any(same(asked, each) for each in known):
            return element
    return choice[1]
