"""What an attention's kernel stores: what the workload makes of the sums, for each query."""

from __future__ import annotations

import tvm_ffi
from tvm import tirx
from tvm.script.ir_builder import tirx as script
from tvm.sym import Analyzer
from tvm.tirx import BufferStore, Expr

from mfmadsl.passes.tir.expression import substitute
from mfmadsl.schedule.attention.chain import at
from mfmadsl.schedule.attention.described import Result, Softmax
from mfmadsl.schedule.attention.loops import loops
from mfmadsl.schedule.attention.softmax import exchange
from mfmadsl.schedule.attention.wave import Cut, Place, Registers
from mfmadsl.schedule.product.nest import is_number, same

_INVERSE = tirx.Var("inverse", "float32")
"""One over the sum of exponentials; 0 for a sum of 0."""


def store_results(cut: Cut, place: Place, held: Registers) -> None:
    """Store all results. Those of a query alone come from one of the lanes that have it."""
    zero, one = tirx.const(0, "float32"), tirx.const(1, "float32")
    with cut.lanes() as lane:
        for (n,) in loops(cut.sizes.queries):
            exchange(cut, held.total, n, lane, lambda a, b: a + b)
            total = held.total[n, lane, 0]
            inverse = tirx.Select(zero < total, one / total, zero)
            script.buffer_store(held.partial, inverse, [n, lane, 0])
        for result in cut.found.results:
            tiles, each = (cut.sizes.columns, cut.sums) if result.of_columns else (1, 1)
            for c, n, r in loops(tiles, cut.sizes.queries, each):
                _store(cut, place, held, result, (c, n, lane, r))


def _store(
    cut: Cut, place: Place, held: Registers, result: Result, element: tuple[Expr, Expr, Expr, Expr]
) -> None:
    axes, values, (c, n, lane, r) = cut.found.axes, cut.found.values, element
    row = cut.row(place, n, lane)
    column = c * cut.chain.intrinsic.m + at(cut.chain.row, lane=lane, register=r)
    # The last step has made scores of one that there is not.
    largest = held.before[n, lane, 0] * tirx.const(cut.score.factor, "float32")
    known = {
        values.total: held.total[n, lane, 0], values.largest: largest,
        values.attended: held.o[c, n, lane, r], _INVERSE: held.partial[n, lane, 0],
        axes.row.var: row, axes.column.var: column, **place.batch,
    }  # fmt: skip
    store = substitute(_by_inverse(result.store, values), known)
    inside = [row < axes.row.dom.extent]
    if result.of_columns:
        inside.append(column < axes.column.dom.extent)
    else:
        first = tirx.bitwise_and(lane, sum(cut.chain.distances))
        inside.append(tirx.EQ(first, tirx.const(0, "int32")))
    with script.If(Analyzer().simplify(tirx.all(*inside))), script.Then():
        script.buffer_store(store.buffer, store.value, list(store.indices))


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

    return tvm_ffi.structural_map(store, [(tirx.Div, quotient), (tirx.Select, guarded)])
