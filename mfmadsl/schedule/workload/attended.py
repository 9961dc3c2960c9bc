"""What an attention computes, of tensors: scores, their softmax, and the product with V."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TypeAlias

from tvm import te, tirx
from tvm.tirx import Expr

from mfmadsl.passes.tir.expression import constant

Place: TypeAlias = int | Expr
Places: TypeAlias = tuple[Expr, Expr, Expr, Expr]


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
class AttentionTensors:
    """What an attention is computed of; where there is a `table`, K and V are pages. An axis of
    length 1 of the bias stands for all of it."""

    q: te.Tensor
    k: te.Tensor
    v: te.Tensor
    bias: te.Tensor | None = None
    table: te.Tensor | None = None
    lengths: te.Tensor | None = None
    scales: Scales | None = None


def place(layout: str, b: Place, h: Place, s: Place, d: Place) -> tuple[Place, ...]:
    """An element's indices, or a shape, in a layout."""
    return (b, h, s, d) if layout == "bhsd" else (b, s, h, d)


def read_place(layout: str, indices: Sequence[Expr]) -> Places:
    """(batch, head, place, column) of an element's indices, or of a shape, in a layout."""
    batch, one, other, depth = indices
    return (batch, one, other, depth) if layout == "bhsd" else (batch, other, one, depth)


def attended(given: AttentionTensors, form: AttentionForm) -> tuple[te.Tensor, te.Tensor]:
    """O, and the logarithm of the sum of exponentials."""
    own = _Attended(given, form)
    s = te.compute(own.shape, own.product, name="S")
    x = te.compute(own.shape, lambda *at: own.scored(s[at], *at), name="X")
    p, largest, total = _softmax(x, own.dtype)
    *rows, keys = own.shape
    j = te.reduce_axis((0, keys), name="j")

    def weighted(b: Expr, h: Expr, i: Expr, c: Expr) -> Expr:
        return te.sum(p[b, h, i, j].astype("float32") * own.value(b, h, j, c), axis=[j])

    t = te.compute((*rows, own.columns), weighted, name="T")

    def result(*at: Expr) -> Expr:
        b, h, i, c = read_place(form.layout, at)
        zero = tirx.const(0, "float32")
        value = tirx.Select(total[b, h, i] > zero, t[b, h, i, c] / total[b, h, i], zero)
        return own.result(value, h).astype(form.out_dtype)

    batch, heads, queries = rows
    o = te.compute(place(form.layout, batch, heads, queries, own.columns), result, name="O")
    return o, te.compute(rows, lambda *at: largest[at] + tirx.log(total[at]), name="L")


@dataclass(frozen=True)
class _Attended:
    """The values of an attention, in float32."""

    given: AttentionTensors
    form: AttentionForm

    @property
    def dtype(self) -> str:
        """The type of what is multiplied."""
        return str(self.given.q.dtype)

    @property
    def shape(self) -> Places:
        """[batch, head, query, key]"""
        batch, heads, queries, _ = self._lengths(self.given.q)
        *_, length, _ = self._lengths(self.given.v)
        table = self.given.table
        return batch, heads, queries, length if table is None else table.shape[1] * length

    @property
    def columns(self) -> Expr:
        """Those of V."""
        return self.given.v.shape[-1]

    def product(self, b: Expr, h: Expr, i: Expr, j: Expr) -> Expr:
        """Of a query and a key."""
        d = te.reduce_axis((0, self.given.q.shape[-1]), name="d")
        q = self.given.q[place(self.form.layout, b, h, i, d)].astype("float32")
        k = self.given.k[self._of_key(b, h, j, d)].astype("float32")
        return te.sum(q * k, axis=[d])

    def scored(self, product: Expr, b: Expr, h: Expr, i: Expr, j: Expr) -> Expr:
        """The score of a product."""
        scales, lengths, form = self.given.scales, self.given.lengths, self.form
        if scales is not None:
            if scales.q is not None:
                product = product * scales.q[h]
            product = product * self._scale(scales.k, b, h, j)
        if lengths is None:
            return _scored(product, self.given.bias, (b, h, i, j), form)
        if form.ahead is not None:
            form = replace(form, ahead=form.ahead + lengths[b] - self.shape[3])
        score = _scored(product, self.given.bias, (b, h, i, j), form)
        return tirx.Select(j < lengths[b], score, tirx.const(-inf, "float32"))

    def value(self, b: Expr, h: Expr, j: Expr, c: Expr) -> Expr:
        """An element of V; scales of places belong to it, since sums are over these."""
        scales = self.given.scales
        element = self.given.v[self._of_key(b, h, j, c)].astype("float32")
        if scales is None or not scales.of_places:
            return element
        whole = element * self._scale(scales.v, b, h, j)
        return whole.astype(self.dtype).astype("float32")

    def result(self, attended: Expr, h: Expr) -> Expr:
        """What is stored of a weighted sum."""
        scales = self.given.scales
        if scales is None or scales.of_places:
            return attended
        return attended * scales.v[self._shared(h)]

    def _scale(self, scale: te.Tensor, b: Expr, h: Expr, j: Expr) -> Expr:
        if len(scale.shape) == 1:
            return scale[self._shared(h)]
        return scale[self._of_key(b, h, j, tirx.const(0, "int32"))[:-1]]

    def _shared(self, h: Expr) -> Expr:
        """The head of K and V that one of Q has."""
        _, heads, *_ = self._lengths(self.given.q)
        _, shared, *_ = self._lengths(self.given.v)
        return tirx.floordiv(h, tirx.floordiv(heads, shared))

    def _of_key(self, b: Expr, h: Expr, key: Expr, column: Expr) -> tuple[Place, ...]:
        """Where an element of K or V is."""
        *_, length, _ = self._lengths(self.given.v)
        if self.given.table is not None:
            b = self.given.table[b, tirx.floordiv(key, length)]
            key = tirx.floormod(key, length)
        return place(self.form.layout, b, self._shared(h), key, column)

    def _lengths(self, tensor: te.Tensor) -> Places:
        """(batch, heads, length, depth)."""
        return read_place(self.form.layout, tensor.shape)


def _scored(
    product: Expr, bias: te.Tensor | None, at: tuple[Expr, ...], form: AttentionForm
) -> Expr:
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


def _softmax(x: te.Tensor, dtype: str) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """(exponentials of the last axis, rounded; the largest of a row; their sum as they are)."""
    *rows, keys = x.shape
    j = te.reduce_axis((0, keys), name="j")
    largest = te.compute(rows, lambda *at: te.max(x[(*at, j)], axis=[j]), name="row_max")
    e = te.compute(x.shape, lambda *at: tirx.exp(x[at] - largest[at[:-1]]), name="E")
    j = te.reduce_axis((0, keys), name="j")
    total = te.compute(rows, lambda *at: te.sum(e[(*at, j)], axis=[j]), name="row_sum")
    return te.compute(x.shape, lambda *at: e[at].astype(dtype), name="P"), largest, total
