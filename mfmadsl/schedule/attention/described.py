"""Attention as a function's blocks describe it: softmax(f(Q x K^T)) x V, in any layout.

The function says what a kernel computes, not how. Whatever it computes of a score, its place and
other buffers before the softmax (a scale, a mask, a bias, a cap) is the expression `score`;
whatever it computes of the second product, the sums of exponentials and the largest scores is a
`Result`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.ir import TensorLoad
from tvm.tirx import BufferStore, Expr, IterVar, PrimFunc, Var


@dataclass(frozen=True)
class Axes:
    """The axes of an attention: of batches and heads, of queries, of keys, of what the first
    product sums over, and of V's columns."""

    batch: tuple[IterVar, ...]
    row: IterVar
    key: IterVar
    depth: IterVar
    column: IterVar


@dataclass(frozen=True)
class Softmax:
    """Variables in expressions: a `product` of a query and a key; of a row the `largest` score, the
    `total` of exponentials, and a column of their product with V, `attended`."""

    product: Var
    largest: Var
    total: Var
    attended: Var


@dataclass(frozen=True)
class Result:
    """What is stored for each column, or for each row."""

    store: BufferStore
    of_columns: bool


@dataclass(frozen=True)
class Attention:
    """`q`, `k` and `v` are elements at places that the axes say, and so is `score` with the
    variable of the product; `results` are made of the other variables."""

    function: PrimFunc
    axes: Axes
    values: Softmax
    q: TensorLoad
    k: TensorLoad
    v: TensorLoad
    score: Expr
    results: tuple[Result, ...]

    @property
    def dtype(self) -> str:
        """The type of the elements that are multiplied."""
        return str(self.q.ty.dtype)
