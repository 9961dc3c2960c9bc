"""Where a weight is zero, as conditions say: there its keys are left out."""

from __future__ import annotations

from math import inf

from tvm import tirx
from tvm.ir import Call
from tvm.tirx import Expr

from mfmadsl.passes.tir.expression import choice_of, conjuncts_of, name_of
from mfmadsl.schedule.product.nest import is_number


def parted(weight: Expr) -> tuple[list[Expr], Expr]:
    """(conditions, value) of a weight that is the value where all conditions hold, and else zero.

    Zero times what is no number counts as zero.
    """
    if isinstance(weight, tirx.Mul | tirx.Div):
        left, a = parted(weight.a)
        right, b = parted(weight.b) if isinstance(weight, tirx.Mul) else ([], weight.b)
        return left + right, _product(a, b) if isinstance(weight, tirx.Mul) else tirx.Div(a, b)
    if isinstance(weight, tirx.Cast):
        if str(weight.value.ty.dtype) == "bool":
            return conjuncts_of(weight.value), tirx.const(1, str(weight.ty.dtype))
        conditions, value = parted(weight.value)
        return conditions, tirx.Cast(str(weight.ty.dtype), value)
    if isinstance(weight, Call) and name_of(weight) == "exp":
        choice = choice_of(weight.args[0])
        if choice is not None and _is_number(choice[2], -inf):
            conditions, value = parted(tirx.exp(choice[1]))
            return conjuncts_of(choice[0]) + conditions, value
    choice = choice_of(weight)
    if choice is not None and is_number(choice[2], 0):
        conditions, value = parted(choice[1])
        return conjuncts_of(choice[0]) + conditions, value
    return [], weight


def _product(a: Expr, b: Expr) -> Expr:
    if is_number(a, 1):
        return b
    return a if is_number(b, 1) else tirx.Mul(a, b)


def _is_number(value: Expr, number: float) -> bool:
    return isinstance(value, tirx.FloatImm) and float(value.value) == number
