"""Attention as a TVM workload: softmax(Q K^T * scale) V, with what may stand between."""

from __future__ import annotations

from math import inf
from typing import TypeAlias

from tvm import te, tirx
from tvm.tirx import Expr, PrimFunc, Var

from mfmadsl.argument import check_choice, check_extent, check_flag, check_type
from mfmadsl.error import ArgumentError

TYPES = ("bfloat16", "float16")
Place: TypeAlias = int | Expr
LAYOUTS = ("bhsd", "bshd")
"""Batch, head, place in the sequence, and depth, in the order in which they lie."""


def attention(
    batch: int,
    heads: int,
    queries: int | Var,
    keys: int | Var,
    depth: int,
    dtype: str = "float16",
    *,
    out_dtype: str | None = None,
    value_depth: int | None = None,
    kv_heads: int | None = None,
    layout: str = "bhsd",
    scale: float | None = None,
    causal: bool = False,
    window: int | None = None,
    cap: float | None = None,
    bias: bool = False,
    log_sum: bool = False,
) -> PrimFunc:
    """O = softmax(Q x K^T * scale) x V for each batch and head; scores and sums are float32.

    The parameters are Q, K, V, then the bias if there is one, O, and L with `log_sum`. They lie as
    `layout` says, K and V with `kv_heads` heads, of which each serves as many neighbouring heads of
    Q. `queries` and `keys` may be symbols. O has the type `dtype` if `out_dtype` does not say
    another.

    A score s becomes s * scale (1 / sqrt(depth) if none is given), then cap * tanh(s / cap), then
    has bias[batch, head, query, key] of float32 added. The last query stands at the last key: with
    `causal` a query sees no key behind its own place, and with `window` only so many up to it. A
    query that sees no key has zeros in O. L[batch, head, query] is the logarithm of the sum of
    exp(s), and -inf for such a query.

    Raises ArgumentError for extents that are no positive numbers, for heads that `kv_heads` does
    not divide, and for types and layouts that are not known.
    """
    sizes = {"batch": batch, "heads": heads, "depth": depth}
    batch, heads, depth = (check_extent(name, value) for name, value in sizes.items())
    queries, keys = _length("queries", queries), _length("keys", keys)
    width = depth if value_depth is None else check_extent("value_depth", value_depth)
    shared = heads if kv_heads is None else check_extent("kv_heads", kv_heads)
    if heads % shared:
        raise ArgumentError(f"kv_heads: {shared} do not divide the {heads} heads of Q")
    check_choice("dtype", dtype, TYPES)
    out_dtype = dtype if out_dtype is None else out_dtype
    check_choice("out_dtype", out_dtype, (*TYPES, "float32"))
    check_choice("layout", layout, LAYOUTS)
    for name, flag in (("causal", causal), ("bias", bias), ("log_sum", log_sum)):
        check_flag(name, flag)
    if window is not None:
        check_extent("window", window)
    factor = depth**-0.5 if scale is None else _positive("scale", scale)
    limit = None if cap is None else _positive("cap", cap)

    def place(b: Place, h: Place, s: Place, d: Place) -> tuple[Place, ...]:
        return (b, h, s, d) if layout == "bhsd" else (b, s, h, d)

    def operand(name: str, count: int, length: int | Var, columns: int) -> te.Tensor:
        return te.placeholder(place(batch, count, length, columns), name=name, dtype=dtype)

    q = operand("Q", heads, queries, depth)
    k, v = operand("K", shared, keys, depth), operand("V", shared, keys, width)
    added = te.placeholder((batch, heads, queries, keys), name="bias", dtype="float32")
    d, group = te.reduce_axis((0, depth), name="d"), heads // shared
    scores = (batch, heads, queries, keys)

    def product(b: Expr, h: Expr, i: Expr, j: Expr) -> Expr:
        left, right = q[place(b, h, i, d)], k[place(b, h // group, j, d)]
        return te.sum(left.astype("float32") * right.astype("float32"), axis=[d])

    s = te.compute(scores, product, name="S")

    def scored(*at: Expr) -> Expr:
        score = s[at] * tirx.const(factor, "float32")
        if limit is not None:
            score = tirx.tanh(score * tirx.const(1 / limit, "float32"))
            score = score * tirx.const(limit, "float32")
        if bias:
            score = score + added[at]
        own = at[2] + (keys - queries)
        return _masked(score, own, at[3], causal or window is not None, window)

    x = te.compute(scores, scored, name="X")
    rows = scores[:3]
    p, largest, total = _softmax(x, dtype)
    j = te.reduce_axis((0, keys), name="j")

    def attended(b: Expr, h: Expr, i: Expr, c: Expr) -> Expr:
        value = v[place(b, h // group, j, c)]
        return te.sum(p[b, h, i, j].astype("float32") * value.astype("float32"), axis=[j])

    t = te.compute((*rows, width), attended, name="T")

    def result(*at: Expr) -> Expr:
        b, *inner, c = at
        h, i = inner if layout == "bhsd" else inner[::-1]
        zero = tirx.const(0, "float32")
        value = tirx.Select(total[b, h, i] > zero, t[b, h, i, c] / total[b, h, i], zero)
        return value.astype(out_dtype)

    o = te.compute(place(batch, heads, queries, width), result, name="O")
    logarithm = te.compute(rows, lambda *at: largest[at] + tirx.log(total[at]), name="L")
    return te.create_prim_func(
        [q, k, v, *([added] if bias else []), o, *([logarithm] if log_sum else [])]
    )


def _masked(score: Expr, own: Expr, key: Expr, causal: bool, window: int | None) -> Expr:
    """The score that a query at its own place has with a key, -inf where it does not see it."""
    seen = [key <= own] if causal else []
    if window is not None:
        seen.append(key > own - window)
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


def _length(name: str, value: int | Var) -> int | Var:
    if isinstance(value, Var):
        return value
    return check_extent(name, value)


def _positive(name: str, value: float) -> float:
    check_type(name, value, (int, float), "a positive number")
    if not 0 < value < inf:
        raise ArgumentError(f"{name}: is a positive number, not {value}")
    return float(value)
