"""Attention as a function's blocks describe it: softmax(f(Q x K^T)) x V, in any layout.

The function says what a kernel computes, not how. Whatever it computes of a score, its place and
other buffers before the softmax (a scale, a mask, a bias, a cap) is the expression `score`;
whatever it computes of the second product, the sums of exponentials and the largest scores is a
`Result`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import Buffer, BufferStore, Expr, PrimFunc, Var

from mfmadsl.passes.tir.expression import constant, substitute, widened
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.schedule.product.nest import same

Node = TypeVar("Node", bound=tvm_ffi.Object)


@dataclass(frozen=True)
class Axis:
    """A variable of the function, which may have 64 bits, and how far it counts, in 32 bits."""

    var: Var
    extent: Expr


@dataclass(frozen=True)
class Axes:
    """The axes of an attention: of batches and heads, of queries, of keys, of what the first
    product sums over, and of V's columns."""

    batch: tuple[Axis, ...]
    row: Axis
    key: Axis
    depth: Axis
    column: Axis


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
class PackedQueries:
    """Queries of batches that lie one behind the other in `total` rows.

    `starts` says where each of them begins, and then where the last one ends; `first` is a variable
    for where a batch begins. The queries of one are as many as the extent of the axis of queries,
    a variable, too.
    """

    batch: Axis
    starts: Buffer
    first: Var
    total: Expr


@dataclass(frozen=True)
class Offset:
    """A variable in places of elements, for what is read of memory once for a batch.

    If it is a start, keys are counted from there along axes that end at `ends`; it may be any
    number else.
    """

    variable: Var
    load: TensorLoad
    ends: tuple[Expr, ...]
    is_start: bool = True


@dataclass(frozen=True)
class Attention:
    """`q`, `k` and `v` are elements at places that the axes say, of the type that is multiplied,
    which they may have to be made for; `score` is at such a place, too, with the variable of the
    product, and `results` are made of the other variables."""

    function: PrimFunc
    axes: Axes
    values: Softmax
    q: Expr
    k: Expr
    v: Expr
    score: Expr
    results: tuple[Result, ...]
    packed: PackedQueries | None = None
    offsets: tuple[Offset, ...] = ()

    @property
    def dtype(self) -> str:
        """The type of the elements that are multiplied."""
        return str(self.q.ty.dtype)


def at_places(node: Node, places: Mapping[Var, Expr]) -> Node:
    """What stands at places of axes, which are counted in 32 bits."""
    return substitute(node, {
        axis: place if place.ty == axis.ty else widened(place)
        for axis, place in places.items()
    })  # fmt: skip


def narrow(extent: Expr) -> Expr:
    """An extent in 32 bits."""
    number = constant(extent)
    if number is not None:
        return tirx.const(number, "int32")
    return extent if str(extent.ty.dtype) == "int32" else tirx.Cast("int32", extent)


def dtype_of(value: Expr) -> str:
    """The type of a value."""
    return str(value.ty.dtype)


def cast_types(value: Expr) -> list[str]:
    """The types that a value is cast to, the last first."""
    found = []
    while isinstance(value, tirx.Cast):
        found.append(dtype_of(value))
        value = value.value
    return found


def replaced(value: Expr, instead: Iterable[tuple[TensorLoad, Expr]]) -> Expr:
    """A value with others in place of some loads."""
    pairs = list(instead)

    def load(found: TensorLoad) -> Expr:
        return next((other for each, other in pairs if same(found, each)), found)

    return mapped(value, (TensorLoad, load))
