"""Names of values ahead of a loop."""

from __future__ import annotations

from collections.abc import Callable

import tvm_ffi
from tvm import tirx
from tvm.tirx import Bind, Expr

from mfmadsl.passes.main_loop.analysis.loop import Loop
from mfmadsl.passes.tir.expression import constant, variables_of

Let = Callable[[str, Expr], Expr]
"""Gives a value a name ahead of the loop, and returns that."""

Known = list[tuple[Expr, tirx.Var]]
"""Values that have a name already."""


def naming(loop: Loop, number: int, binds: list[Bind], known: Known) -> Let:
    """Names with a `number`, bound by `binds`; a value that is `known` keeps the name it has."""

    def let(name: str, value: Expr) -> Expr:
        if constant(value) is not None or isinstance(value, tirx.Var):
            return value
        if any(map(loop.is_moving, variables_of(value))):
            return value  # of each iteration
        for other, named in known:
            if tvm_ffi.structural_equal(other, value):
                return named
        variable = tirx.Var(f"{name}_{number}", str(value.ty.dtype))
        binds.append(Bind(variable, value))
        known.append((value, variable))
        return variable

    return let
