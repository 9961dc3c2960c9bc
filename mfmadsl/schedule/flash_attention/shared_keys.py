"""Queries of heads that share keys, as rows of one product: what is read serves all of them.

Of few queries, an instruction's rows would be idle, and each head would read the keys again.
"""

from __future__ import annotations

from dataclasses import replace

import tvm
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import BufferStore, Expr, Var

from mfmadsl.passes.tir.expression import constant, depends, loads_of
from mfmadsl.passes.tir.walk import mapped, walk
from mfmadsl.schedule.flash_attention.described import Attention, Axes, Axis, Result, at_places

MOST_QUERIES = 16
"""Of a head: more of them have rows enough."""


def with_shared_keys(found: Attention) -> Attention:
    """The attention with the heads that share keys among its rows, if it has few queries."""
    queries = constant(found.axes.row.extent)
    if queries is None or queries > MOST_QUERIES:
        return found
    for head in reversed(found.axes.batch):
        group = _sharing(found, head)
        if group > 1:
            return _as_rows(found, head, group, queries)
    return found


def _sharing(found: Attention, head: Axis) -> int:
    """How many neighbours along a batch axis have the same keys and values."""
    heads = constant(head.extent)
    if heads is None:
        return 1
    operands = found.k, found.v
    if not any(depends(each, head.var) for each in operands):
        return heads
    divisors: list[int] = []

    def quotient(node: tirx.FloorDiv) -> None:
        by = constant(node.b)
        if node.a.same_as(head.var) and by is not None:
            divisors.append(by)

    walk(list(operands), (tirx.FloorDiv, quotient))
    if len(set(divisors)) != 1 or heads % divisors[0]:
        return 1
    group, inside = tirx.Var("group", "int32"), tirx.Var("inside", "int32")
    analyzer = Analyzer()
    analyzer.bind(inside, tvm.ir.Range(0, divisors[0]))
    moved = {head.var: group * divisors[0] + inside}
    read = [load for each in operands for load in loads_of(at_places(each, moved))]
    places = [index for load in read for index in load.indices]
    return 1 if any(depends(analyzer.simplify(p), inside) for p in places) else divisors[0]


def _as_rows(found: Attention, head: Axis, group: int, queries: int) -> Attention:
    axes = found.axes
    heads = constant(head.extent)
    assert heads is not None
    kept = _axis("head", heads // group)
    row = _axis("row", group * queries)
    moved: dict[Var, Expr] = {
        head.var: kept.var * group + tirx.floordiv(row.var, queries),
        axes.row.var: tirx.floormod(row.var, queries),
    }
    batch = tuple(kept if each is head else each for each in axes.batch)
    own = Axes(batch, row, axes.key, axes.depth, axes.column)
    analyzer = Analyzer()
    for each in (*batch, row, axes.key, axes.depth, axes.column):
        analyzer.bind(each.var, _range(each))

    def simplified(load: TensorLoad) -> TensorLoad:
        return tirx.BufferLoad(load.source, [analyzer.simplify(index) for index in load.indices])

    def at(element: Expr) -> Expr:
        return mapped(at_places(element, moved), (TensorLoad, simplified))

    def stored(result: Result) -> Result:
        store = at_places(result.store, moved)
        indices = [analyzer.simplify(index) for index in store.indices]
        return replace(result, store=BufferStore(store.buffer, store.value, indices))

    return replace(
        found, axes=own, q=at(found.q), k=at(found.k), v=at(found.v),
        score=_seen_by_all(analyzer, at(found.score)),
        results=tuple(map(stored, found.results)),
    )  # fmt: skip


def _seen_by_all(analyzer: Analyzer, score: Expr) -> Expr:
    """A score without masks that hide no key, as that of a last query does not."""

    def chosen(node: tirx.Select) -> Expr:
        return node.true_value if analyzer.can_prove(node.condition) else node

    return mapped(score, (tirx.Select, chosen))


def _range(axis: Axis) -> tvm.ir.Range:
    dtype = str(axis.var.ty.dtype)
    return tvm.ir.Range(tirx.const(0, dtype), axis.extent.astype(dtype))


def _axis(name: str, extent: int) -> Axis:
    return Axis(tirx.Var(name, "int32"), tirx.const(extent, "int32"))
