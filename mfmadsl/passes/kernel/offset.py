"""Arrays that begin somewhere in what their pointers point to: a symbol says how many elements on.

Kernels take pointers to where they begin, so that the size of an array bounds what is read of it.
The host adds the offset, which it reads off the array that it is given.
"""

from __future__ import annotations

from tvm import tirx
from tvm.tirx import Expr, PrimFunc, Var

from mfmadsl.passes.tir.expression import bits_of, substitute


def offsets_of(function: PrimFunc) -> dict[str, Expr]:
    """The bytes from its pointer to an array, by the array's name, where a symbol tells them."""
    found: dict[str, Expr] = {}
    for parameter in function.params:
        offset = getattr(parameter, "elem_offset", None)
        if isinstance(offset, Var):
            size = tirx.const(bits_of(parameter.dtype) // 8, "int64")
            found[str(parameter.name)] = tirx.Cast("int64", offset) * size
    return found


def without_offsets(function: PrimFunc) -> PrimFunc:
    """The function, flattened, without these offsets in its indices."""
    offsets = [getattr(parameter, "elem_offset", None) for parameter in function.params]
    symbols = [offset for offset in offsets if isinstance(offset, Var)]
    none: dict[Var, Expr] = {each: tirx.const(0, str(each.ty.dtype)) for each in symbols}
    return function.with_body(substitute(function.body, none)) if none else function
