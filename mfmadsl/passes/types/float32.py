"""Computing in float32 what is written in narrow types: which expressions, and what of them.

Whoever asks says how a narrow value becomes a float32, and how that is rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import tvm
from tvm import tirx
from tvm.tirx import Expr

from mfmadsl.passes.tir.device import called
from mfmadsl.passes.tir.rewrite import Binary, Computing, dtype_of, of_lanes
from mfmadsl.passes.types.bits import rounded
from mfmadsl.passes.types.functions import FUNCTIONS


@dataclass(frozen=True)
class Conversions:
    """`wide` makes a float32 of a value of one of `types`, `narrow` a value of a type of those of a
    float32. Both may be given vectors, if the function that is rewritten has some."""

    types: frozenset[str]
    wide: Callable[[Expr], Expr]
    narrow: Callable[[Expr, str], Expr]

    def computes(self, expression: Computing) -> bool:
        """Whether an expression computes with a narrow value, rather than moving it."""
        if isinstance(expression, tvm.ir.Call):
            values = (expression, *expression.args)
            return called(expression) in FUNCTIONS and any(map(self._is_narrow, values))
        if isinstance(expression, tirx.Cast):
            return self._is_narrow(expression) or self._is_narrow(expression.value)
        return self._is_narrow(expression.a)

    def computed(self, expression: Computing) -> Expr:
        """The same of float32, rounded to the type that the expression has."""
        dtype = dtype_of(expression)
        kind = "float32" if dtype in self.types else dtype
        result: Expr
        if isinstance(expression, tirx.Cast):
            result = _as(kind, self._widened(expression.value))
        elif isinstance(expression, Binary):
            result = type(expression)(self._widened(expression.a), self._widened(expression.b))
        else:
            arguments = [self._widened(argument) for argument in expression.args]
            result = tirx.call_intrin(of_lanes(kind, expression), expression.op, *arguments)
        return self.narrow(result, dtype) if dtype in self.types else result

    def _is_narrow(self, value: Expr) -> bool:
        return dtype_of(value) in self.types

    def _widened(self, value: Expr) -> Expr:
        """The float32 that a narrow value is; of other types the value itself."""
        if not self._is_narrow(value):
            return value
        if isinstance(value, tirx.FloatImm):
            return tirx.const(float(rounded(value)), "float32")
        return self.wide(value)


def _as(dtype: str, value: Expr) -> Expr:
    return value if dtype_of(value) == dtype else tirx.Cast(of_lanes(dtype, value), value)
