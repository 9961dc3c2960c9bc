"""Numbers that stand as symbols in a schedule: they multiply extents that are known at the launch.

TVM's schedule has to prove that tiles cover the rows that they are made for. It does for n rows,
and not for 2 * n: it divides by what 2 and the rows of a tile have in common, and then no longer
sees that (2 * n + 31) // 32 tiles are enough. Of b * n it does.
"""

from __future__ import annotations

from tvm import tirx
from tvm.tirx import Expr, PrimFunc, Var

from mfmadsl.passes.tir.walk import mapped

FACTORS = "mfmadsl.factors"
"""The attribute of a function that says which number each of its symbols, by name, stands for."""


def factors_of(function: PrimFunc) -> dict[str, int]:
    """The numbers that symbols of a function stand for, by their names."""
    numbers = (function.attrs or {}).get(FACTORS, {})
    return {str(name): int(number) for name, number in numbers.items()}


def with_factors(function: PrimFunc) -> PrimFunc:
    """The function with the numbers in the places of the symbols that stand for them."""
    known = factors_of(function)
    if not known:
        return function

    def number(variable: Var) -> Expr:
        if variable.name not in known:
            return variable
        return tirx.IntImm(variable.ty, known[variable.name])

    return mapped(function.without_attr(FACTORS), (Var, number))
