"""Weighted sums as a function's blocks describe them: f(Q x K^T, ...) x V, without a softmax.

Rows, keys and columns are those of an attention; a backward pass has queries and keys as either.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.tirx import Expr, PrimFunc, Var

from mfmadsl.schedule.flash_attention.described import Axes, Axis, Result


@dataclass(frozen=True)
class FirstProduct:
    """A product of rows and keys, the `variable` in weights: the sum over `depth` of `row` times
    `key`, of the type that is multiplied."""

    variable: Var
    row: Expr
    key: Expr
    depth: Axis


@dataclass(frozen=True)
class WeightedSum:
    """A sum over keys of `weight`, which is rounded, times `value`, for each row and `column`; the
    variable `summed` in its results. A weight is an expression of products, in float32."""

    weight: Expr
    value: Expr
    column: Axis
    summed: Var
    results: tuple[Result, ...]


@dataclass(frozen=True)
class WeightedSums:
    """Sums over the same keys for the same rows, of weights made of the same products.

    The depth and the column of `axes` are those of the first product and of the first sum. Sums are
    over `repeats`, too, for which the keys are walked over again.
    """

    function: PrimFunc
    axes: Axes
    repeats: tuple[Axis, ...]
    products: tuple[FirstProduct, ...]
    sums: tuple[WeightedSum, ...]

    @property
    def dtype(self) -> str:
        """The type of the elements that are multiplied."""
        return str(self.products[0].row.ty.dtype)
