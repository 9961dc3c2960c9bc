"""What the workload makes of the sums, for each query: the values of results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tvm import tirx
from tvm.tirx import BufferStore, Expr, Var

from mfmadsl.passes.tir.walk import mapped
from mfmadsl.schedule.flash_attention.chain import at
from mfmadsl.schedule.flash_attention.described import Result, Softmax, at_places
from mfmadsl.schedule.flash_attention.wave import Cut, WavePlace
from mfmadsl.schedule.product.nest import is_number, same

_INVERSE = tirx.Var("inverse", "float32")  # of the sum of exponentials


@dataclass(frozen=True)
class Sums:
    """What is known of a query: the largest score, the sum of exponentials, one over that (0 for a
    sum of 0), and a column of the product with V."""

    largest: Expr
    total: Expr
    inverse: Expr
    attended: Expr


def made_of(
    cut: Cut, result: Result, sums: Sums, places: Mapping[Var, Expr], column: Expr
) -> BufferStore:
    """A result as it is stored."""
    values = cut.found.values
    known = {
        values.largest: sums.largest, values.total: sums.total, _INVERSE: sums.inverse,
        values.attended: sums.attended, cut.found.axes.column.var: column, **places,
    }  # fmt: skip
    return at_places(_by_inverse(result.store, values), known)


def inverse_of(total: Expr) -> Expr:
    """One over a sum of exponentials; 0 for a sum of 0."""
    zero, one = tirx.const(0, "float32"), tirx.const(1, "float32")
    return tirx.Select(zero < total, one / total, zero)


def column_of(cut: Cut, c: Expr, lane: Expr, register: Expr) -> Expr:
    """The column of V of an element of O."""
    return c * cut.chain.intrinsic.m + at(cut.chain.row, lane=lane, register=register)


def in_columns(cut: Cut, place: WavePlace, row: Expr, column: Expr) -> list[Expr]:
    """The conditions under which an element of O is one of the result."""
    return [row < place.rows, column < cut.found.axes.column.extent]


def is_first(cut: Cut, lane: Expr) -> Expr:
    """Whether a lane is the first of those that have its query."""
    others = tirx.bitwise_and(lane, sum(cut.chain.distances))
    return tirx.EQ(others, tirx.const(0, "int32"))


def _by_inverse(store: BufferStore, values: Softmax) -> BufferStore:
    """A result with products by the inverse of the total in place of quotients."""
    some = tirx.const(0, "float32") < values.total

    def quotient(found: tirx.Div) -> Expr:
        return found.a * _INVERSE if found.b.same_as(values.total) else found

    def guarded(found: tirx.Select) -> Expr:
        """The inverse is 0 where there is no sum."""
        product = found.true_value
        if not same(found.condition, some) or not is_number(found.false_value, 0):
            return found
        if not isinstance(product, tirx.Mul) or not product.a.same_as(values.attended):
            return found
        return product if product.b.same_as(_INVERSE) else found

    return mapped(store, (tirx.Div, quotient), (tirx.Select, guarded))
