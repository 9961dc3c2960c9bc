"""Thread indices anew, so that what is made of them does not wait in registers for its use.

LLVM computes the places of C ahead of the loops over K, since they are the same after it; the loop
needs its registers for sums, and where there are too few, they are spilled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm.tirx import Bind, Cast, Expr, Stmt, Var

from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.expression import depends, i32, narrowed, substitute


def renewed(statements: Sequence[Stmt], threads: Mapping[Var, int]) -> list[Stmt]:
    """The statements, with thread indices that LLVM takes for others than those before.

    `threads` says how many there are of each.
    """
    used = {v: n for v, n in threads.items() if any(depends(s, v) for s in statements)}
    own = {variable: Var(variable.name, variable.ty) for variable in used}
    binds = [Bind(own[v], _renewed(v, n)) for v, n in used.items()]
    return [*binds, *(substitute(statement, own) for statement in statements)]


def _renewed(index: Var, count: int) -> Expr:
    """The index, of its type, of which LLVM sees again how many there are."""
    anew = device.renewed(narrowed(index)) & i32((1 << (count - 1).bit_length()) - 1)
    dtype = str(index.ty.dtype)
    return anew if dtype == "int32" else Cast(dtype, anew)
