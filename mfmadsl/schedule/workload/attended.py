"""What an attention computes, of tensors: scores, their softmax, and the product with V."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import TypeAlias

from tvm import te, tirx
from tvm.tirx import Expr

from mfmadsl.passes.tir.expression import constant
from mfmadsl.schedule.product.row_batches import batch_of_rows

Place: TypeAlias = int | Expr


@dataclass(frozen=True)
class AttentionForm:
    """What an attention does with its scores: `scale`, then `cap`, as `attention` has them.

    Query i sees keys up to i + `ahead`, and of these the last `window`; all where these are None.
    `ahead` counts from all keys, of which a batch may have fewer.
    """

    layout: str
    scale: float
    cap: float | None = None
    ahead: Place | None = None
    window: int | None = None
    out_dtype: str = "float16"


@dataclass(frozen=True)
class Scales:
    """What elements are multiplied with: those of a head of Q [head], and of K and V [kv_head], or
    of each of their places, where these lie as K and V do, without the depth."""

    q: te.Tensor | None
    k: te.Tensor
    v: te.Tensor

    @property
    def of_places(self) -> bool:
        """Whether each place of K and V has one."""
        return len(self.k.shape) > 1


@dataclass(frozen=True)
class Starts:
    """Where batches begin that lie one behind the other, and then where the last one ends: of
    queries, and of keys where these lie so, too."""

    q: te.Tensor
    k: te.Tensor | None


@dataclass(frozen=True)
class AttentionTensors:
    """What an attention is computed of. Where there is a `table`, K and V are pages; where there
    are `starts`, Q has no axis of batches, and neither have K and V if they lie so. An axis of
    length 1 of the bias stands for all of it."""

    q: te.Tensor
    k: te.Tensor
    v: te.Tensor
    bias: te.Tensor | None = None
    table: te.Tensor | None = None
    lengths: te.Tensor | None = None
    scales: Scales | None = None
    starts: Starts | None = None


def place(layout: str, b: Place | None, h: Place, s: Place, d: Place) -> tuple[Place, ...]:
    """An element's indices, or a shape, in a layout, which may have no batches."""
    whole = (b, h, s, d) if layout == "bhsd" else (b, s, h, d)
    return tuple(each for each in whole if each is not None)


def read_place(layout: str, indices: Sequence[Expr]) -> tuple[Expr, Expr, Expr]:
    """(head, place, column) of an element's indices, or of a shape, in a layout."""
    one, other, column = indices[-3:]
    return (one, other, column) if layout == "bhsd" else (other, one, column)


def attended(given: AttentionTensors, form: AttentionForm) -> tuple[te.Tensor, te.Tensor]:
    """O, and the logarithm of the sum of exponentials, [batch, head, query], or without batches."""
    own = _Attended(given, form)
    s = te.compute(own.shape, own.product, name="S")
    x = te.compute(own.shape, lambda *at: own.scored(s[at], at), name="X")
    p, largest, total = softmax(x, own.dtype)
    *rows, keys = own.shape
    j = te.reduce_axis((0, keys), name="j")

    def weighted(*at: Expr) -> Expr:
        *row, column = at
        return te.sum(p[(*row, j)].astype("float32") * own.value((*row, j), column), axis=[j])

    t = te.compute((*rows, own.columns), weighted, name="T")

    def result(*at: Expr) -> Expr:
        head, query, column = read_place(form.layout, at)
        row = (*at[:-3], head, query)
        zero = tirx.const(0, "float32")
        value = tirx.Select(total[row] > zero, t[(*row, column)] / total[row], zero)
        return own.result(value, head).astype(form.out_dtype)

    *batch, heads, queries = rows
    places = place(form.layout, batch[0] if batch else None, heads, queries, own.columns)
    o = te.compute(places, result, name="O")
    return o, te.compute(rows, lambda *at: largest[at] + tirx.log(total[at]), name="L")


@dataclass(frozen=True)
class _Attended:
    """The values of an attention, in float32, at places of its `shape`."""

    given: AttentionTensors
    form: AttentionForm

    @property
    def dtype(self) -> str:
        """The type of what is multiplied."""
        return str(self.given.q.dtype)

    @property
    def shape(self) -> tuple[Expr, ...]:
        """[batch, head, query, key], or without batches."""
        heads, queries, _ = read_place(self.form.layout, self.given.q.shape)
        _, length, _ = read_place(self.form.layout, self.given.v.shape)
        keys = length if self.given.table is None else self.given.table.shape[1] * length
        return *self.given.q.shape[:-3], heads, queries, keys

    @property
    def columns(self) -> Expr:
        """Those of V."""
        return self.given.v.shape[-1]

    @cached_property
    def row_batch(self) -> te.Tensor | None:
        """The batch of each row of Q, if it has no axis of batches."""
        if self.given.starts is None:
            return None
        return batch_of_rows(self.given.starts.q, self.shape[1])

    def product(self, *at: Expr) -> Expr:
        """Of a query and a key."""
        *batch, h, i, _ = at
        d = te.reduce_axis((0, self.given.q.shape[-1]), name="d")
        own = place(self.form.layout, batch[0] if batch else None, h, i, d)
        return te.sum(
            self.given.q[own].astype("float32") * self._there(self.given.k, at, d), axis=[d]
        )

    def scored(self, product: Expr, at: Sequence[Expr]) -> Expr:
        """The score of a product."""
        *_, h, _, j = at
        scales, form, count = self.given.scales, self.form, self._count(at)
        if scales is not None:
            if scales.q is not None:
                product = product * scales.q[h]
            product = product * self._scale(scales.k, at)
        if form.ahead is not None and self.given.starts is not None:
            keys = self.shape[-1] if count is None else count
            form = replace(form, ahead=keys - self.given.starts.q[self._batch(at) + 1])
        elif form.ahead is not None and count is not None:
            form = replace(form, ahead=form.ahead + count - self.shape[-1])
        score = _scored(product, self.given.bias, at, form)
        if count is None:
            return score
        return tirx.if_then_else(j < count, score, tirx.const(-inf, "float32"))

    def value(self, at: Sequence[Expr], column: Expr) -> Expr:
        """An element of V; scales of places belong to it, since sums are over these."""
        scales = self.given.scales
        if scales is None or not scales.of_places:
            return self._there(self.given.v, at, column)
        return self._there(self.given.v, at, column, scales.v)

    def result(self, attended: Expr, head: Expr) -> Expr:
        """What is stored of a weighted sum."""
        scales = self.given.scales
        if scales is None or scales.of_places:
            return attended
        return attended * scales.v[self._shared(head)]

    def _batch(self, at: Sequence[Expr]) -> Expr:
        return at[0] if self.row_batch is None else self.row_batch[at[-2]]

    def _count(self, at: Sequence[Expr]) -> Expr | None:
        """How many keys the batch has, if not all."""
        starts, b = self.given.starts, self._batch(at)
        if starts is not None and starts.k is not None:
            return starts.k[b + 1] - starts.k[b]
        return None if self.given.lengths is None else self.given.lengths[b]

    def _there(
        self, tensor: te.Tensor, at: Sequence[Expr], column: Expr, scale: te.Tensor | None = None
    ) -> Expr:
        """An element of K or V, times a scale; where keys lie one behind the other, 0 of those that
        the batch does not have, since the array may have none there."""
        element: Expr = tensor[self._of_key(at, column)].astype("float32")
        if scale is not None:
            whole = element * self._scale(scale, at)
            element = whole.astype(self.dtype).astype("float32")
        starts, count = self.given.starts, self._count(at)
        if starts is None or starts.k is None or count is None:
            return element
        return tirx.if_then_else(at[-1] < count, element, tirx.const(0, "float32"))

    def _scale(self, scale: te.Tensor, at: Sequence[Expr]) -> Expr:
        if len(scale.shape) == 1:
            return scale[self._shared(at[-3])]
        return scale[self._of_key(at, tirx.const(0, "int32"))[:-1]]

    def _shared(self, head: Expr) -> Expr:
        """The head of K and V that one of Q has."""
        heads, _, _ = read_place(self.form.layout, self.given.q.shape)
        shared, _, _ = read_place(self.form.layout, self.given.v.shape)
        return tirx.floordiv(head, tirx.floordiv(heads, shared))

    def _of_key(self, at: Sequence[Expr], column: Expr) -> tuple[Place, ...]:
        """Where an element of K or V is."""
        *_, head, _, key = at
        batch: Expr | None = self._batch(at)
        starts, table = self.given.starts, self.given.table
        if table is not None:
            _, length, _ = read_place(self.form.layout, self.given.v.shape)
            batch = table[batch, tirx.floordiv(key, length)]
            key = tirx.floormod(key, length)
        elif starts is not None and starts.k is not None:
            key, batch = starts.k[batch] + key, None
        return place(self.form.layout, batch, self._shared(head), key, column)


def _scored(product: Expr, bias: te.Tensor | None, at: Sequence[Expr], form: AttentionForm) -> Expr:
    """The score of a query and a key."""
    *_, query, key = at
    score = product * tirx.const(form.scale, "float32")
    if form.cap is not None:
        score = tirx.tanh(score * tirx.const(1 / form.cap, "float32"))
        score = score * tirx.const(form.cap, "float32")
    if bias is not None:
        own = at[len(at) - len(bias.shape) :]
        zero = tirx.const(0, "int32")
        whole = [zero if constant(n) == 1 else a for n, a in zip(bias.shape, own, strict=True)]
        score = score + bias[tuple(whole)].astype("float32")
    if form.ahead is None:
        return score
    return _masked(score, query + form.ahead, key, form.window)


def _masked(score: Expr, last: Expr, key: Expr, window: int | None) -> Expr:
    """The score of a key for a query that sees keys up to a last one; -inf where it does not."""
    seen = [key <= last]
    if window is not None:
        seen.append(key > last - window)
    for condition in seen:
        score = tirx.Select(condition, score, tirx.const(-inf, "float32"))
    return score


def softmax(x: te.Tensor, dtype: str) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """(exponentials of the last axis, rounded; the largest of a row; their sum as they are)."""
    *rows, keys = x.shape
    j = te.reduce_axis((0, keys), name="j")
    largest = te.compute(rows, lambda *at: te.max(x[(*at, j)], axis=[j]), name="row_max")
    e = te.compute(x.shape, lambda *at: tirx.exp(x[at] - largest[at[:-1]]), name="E")
    j = te.reduce_axis((0, keys), name="j")
    total = te.compute(rows, lambda *at: te.sum(e[(*at, j)], axis=[j]), name="row_sum")
    return te.compute(x.shape, lambda *at: e[at].astype(dtype), name="P"), largest, total
