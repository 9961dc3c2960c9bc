"""Rewriting the expressions of a kernel to some that exist of scalars only."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, get_args

import tvm
import tvm_ffi
from tvm import tirx
from tvm.tirx import BufferStore, Expr, For, ForKind, PrimFunc, Stmt

from mfmadsl.passes.tir.error import LoweringError
from mfmadsl.passes.tir.walk import mapped, walk

Binary: TypeAlias = (
    tirx.Add | tirx.Sub | tirx.Mul | tirx.Div | tirx.Max | tirx.Min
    | tirx.EQ | tirx.NE | tirx.LT | tirx.LE | tirx.GT | tirx.GE
)  # fmt: skip
"""Arithmetic and comparisons that floats have."""

Computing: TypeAlias = Binary | tirx.Cast | tvm.ir.Call
_COMPUTING = get_args(Computing)


def dtype_of(expression: Expr) -> str:
    """The type of an expression's elements, or nothing where it has none."""
    return str(getattr(expression.ty, "dtype", "")).partition("x")[0]


def lanes_of(expression: Expr) -> int:
    """How many lanes an expression's type has."""
    return int(tvm.DataType(str(expression.ty.dtype)).lanes)


def of_lanes(dtype: str, like: Expr) -> str:
    """The type of a vector of as many elements as an expression has, or of a scalar."""
    return dtype if lanes_of(like) == 1 else f"{dtype}x{lanes_of(like)}"


def rewrite(
    function: PrimFunc, computes: Callable[[Computing], bool],
    computed: Callable[[Computing], Expr], vectors: bool = False,
) -> PrimFunc:  # fmt: skip
    """The function with each expression that `computes` holds for replaced, inner ones first.

    A replacement has the type of what it replaces. If `computed` takes no `vectors`, vectorized
    loops around them are unrolled.
    Raises LoweringError, with the buffer that is stored, where `computed` does, and for a vector
    where it takes none.
    """
    refused: list[str] = []

    def replaced(expression: Computing) -> Expr:
        if not computes(expression):
            return expression
        try:
            if not vectors:
                _check_scalar(expression)
            return computed(expression)
        except LoweringError as error:
            # An exception would lose its type on its way through TVM.
            refused.append(str(error))
            return expression

    def unrolled(loop: For) -> For:
        if loop.kind != ForKind.VECTORIZED or not _holds(computes, loop.body):
            return loop
        return For(
            loop.loop_var, loop.min, loop.extent, ForKind.UNROLLED, loop.body,
            loop.thread_binding, loop.annotations, loop.step, loop.span,
        )  # fmt: skip

    body = function.body if vectors else mapped(function.body, (For, unrolled))
    body = mapped(body, (_COMPUTING, replaced))
    if refused:
        message = refused[0]
        refused.clear()
        stores: list[BufferStore] = []
        walk(function.body, (tirx.BufferStore, stores.append))
        for store in stores:
            mapped(store.value, (_COMPUTING, replaced))
            if refused:
                raise LoweringError(f"what is stored in `{store.buffer.name}`: {message}")
        raise LoweringError(message)
    return with_body(function, body)


def with_body(function: PrimFunc, body: Stmt) -> PrimFunc:
    """The function with another body; itself where that is its own."""
    return function if body.same_as(function.body) else function.with_body(body)


def _check_scalar(expression: Expr) -> None:
    if lanes_of(expression) > 1:
        raise LoweringError(
            f"a vector of {lanes_of(expression)} {dtype_of(expression)} is computed, which is done "
            "of one element at a time: write a loop of kind T.vectorized or T.unroll instead of "
            "T.ramp"
        )


def _holds(computes: Callable[[Computing], bool], body: Stmt) -> bool:
    """Whether something in a statement is computed."""

    def stop(expression: Computing) -> tvm_ffi.VisitInterrupt | None:
        return tvm_ffi.VisitInterrupt(True) if computes(expression) else None

    return walk(body, (_COMPUTING, stop)) is not None
