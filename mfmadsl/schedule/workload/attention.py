"""Attention as a TVM workload: softmax(Q K^T * scale) V, with what may stand between."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TypeAlias

from tvm import te, tirx
from tvm.tirx import Expr, PrimFunc, Var

from mfmadsl.argument import check_choice, check_extent, check_flag, check_type, described
from mfmadsl.error import ArgumentError
from mfmadsl.passes.tir.expression import constant

TYPES = ("bfloat16", "float16")
_LEAST = 1e-30
_PAGE = 16
_LONGEST = 1 << 30  # window: places of keys have 32 bits
Place: TypeAlias = int | Expr
LAYOUTS = ("bhsd", "bshd")
"""Batch, head, place in the sequence, and depth, in the order in which they lie."""


def attention(
    batch: int,
    heads: int,
    queries: int | Var,
    keys: int | Expr,
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
    lengths: bool = False,
    pages: int | Var | None = None,
    page_size: int | None = None,
) -> PrimFunc:
    """O = softmax(Q x K^T * scale) x V for each batch and head; scores and sums are float32.

    The parameters are Q, K, V, then the table, the lengths and the bias if there are such, O, and L
    with `log_sum`. They lie as `layout` says, K and V with `kv_heads` heads, of which each serves
    as many neighbouring heads of Q. `queries` and `keys` may be symbols. O has the type `dtype` if
    `out_dtype` does not say another.

    With `lengths` a batch has lengths[batch] keys, and `keys` is the most that one may have. With
    `pages` K and V are so many pages of `page_size` keys (16 if not said) instead of batches, and
    key j of a batch is in page table[batch, j // page_size]; `keys` is a multiple of `page_size`,
    or a symbol times it. Lengths and table are int32. Of the table no more is read than a batch has
    keys for.

    A score s becomes s * scale (1 / sqrt(depth) if none is given), then cap * tanh(s / cap), then
    has bias[batch, head, query, key] of float32 added. The last query stands at the last key: with
    `causal` a query sees no key behind its own place, and with `window` only so many up to it. A
    query that sees no key has zeros in O. L[batch, head, query] is the logarithm of the sum of
    exp(s), and -inf for such a query.

    Raises ArgumentError for extents that are no positive numbers, for heads that `kv_heads` does
    not divide, for keys that are not whole pages, and for types and layouts that are not known.
    """
    sizes = {"batch": batch, "heads": heads, "depth": depth}
    batch, heads, depth = (check_extent(name, value) for name, value in sizes.items())
    queries = _length("queries", queries)
    if pages is None and page_size is not None:
        raise ArgumentError("page_size: means nothing without `pages`, the number of them")
    size = check_extent("page_size", _PAGE if page_size is None else page_size)
    width = None if pages is None else _whole_pages(keys, size)
    most = _length("keys", keys) if width is None else width * size
    columns = depth if value_depth is None else check_extent("value_depth", value_depth)
    shared = heads if kv_heads is None else check_extent("kv_heads", kv_heads)
    if heads % shared:
        raise ArgumentError(f"kv_heads: {shared} do not divide the {heads} heads of Q")
    check_type("dtype", dtype, str, "a str")
    if dtype == "float32":
        raise ArgumentError(
            "dtype: no kernel attends in float32; write two products and a softmax, or leave"
            " `nn.attention` to Relax"
        )
    check_choice("dtype", dtype, TYPES)
    out_dtype = dtype if out_dtype is None else out_dtype
    check_choice("out_dtype", out_dtype, (*TYPES, "float32"))
    check_choice("layout", layout, LAYOUTS)
    flags = {"causal": causal, "bias": bias, "log_sum": log_sum, "lengths": lengths}
    for name, flag in flags.items():
        check_flag(name, flag)
    if window is not None and check_extent("window", window) > _LONGEST:
        raise ArgumentError(f"window: is at most 2^30, not {window}")
    factor = depth**-0.5 if scale is None else _positive("scale", scale)
    limit = None if cap is None else _positive("cap", cap)

    q = te.placeholder(place(layout, batch, heads, queries, depth), dtype, "Q")
    many, length = (batch, most) if pages is None else (_length("pages", pages), size)
    k, v = (
        te.placeholder(place(layout, many, shared, length, each), dtype, name)
        for name, each in (("K", depth), ("V", columns))
    )
    table = None if width is None else te.placeholder((batch, width), "int32", "table")
    known = te.placeholder((batch,), "int32", "lengths") if lengths else None
    added = te.placeholder((batch, heads, queries, most), "float32", "bias") if bias else None
    ahead = most - queries if causal or window is not None else None
    form = AttentionForm(layout, factor, limit, ahead, window, out_dtype)
    o, logarithm = attended(q, k, v, added, form, table, known)
    given = [each for each in (q, k, v, table, known, added) if each is not None]
    return te.create_prim_func([*given, o, *([logarithm] if log_sum else [])])


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


def place(layout: str, b: Place, h: Place, s: Place, d: Place) -> tuple[Place, ...]:
    """An element's indices, or a shape, in a layout."""
    return (b, h, s, d) if layout == "bhsd" else (b, s, h, d)


def attended(
    q: te.Tensor, k: te.Tensor, v: te.Tensor, bias: te.Tensor | None, form: AttentionForm,
    table: te.Tensor | None = None, lengths: te.Tensor | None = None,
) -> tuple[te.Tensor, te.Tensor]:  # fmt: skip
    """O, and the logarithm of the sum of exponentials, of tensors; an axis of length 1 of the bias
    stands for all of it. Where there is a table, K and V are pages."""
    batch, heads, queries, depth = _lengths(q, form.layout)
    _, shared, length, width = _lengths(v, form.layout)
    keys = length if table is None else table.shape[1] * length
    group = tirx.floordiv(heads, shared)
    scores = (batch, heads, queries, keys)
    d, j = te.reduce_axis((0, depth), name="d"), te.reduce_axis((0, keys), name="j")
    dtype = str(q.dtype)

    def of_key(tensor: te.Tensor, b: Expr, h: Expr, key: Expr, column: Expr) -> Expr:
        shared_head = tirx.floordiv(h, group)
        if table is not None:
            b, key = table[b, tirx.floordiv(key, length)], tirx.floormod(key, length)
        return tensor[place(form.layout, b, shared_head, key, column)].astype("float32")

    def product(b: Expr, h: Expr, i: Expr, j: Expr) -> Expr:
        own = q[place(form.layout, b, h, i, d)].astype("float32")
        return te.sum(own * of_key(k, b, h, j, d), axis=[d])

    def scored(*at: Expr) -> Expr:
        if lengths is None:
            return _scored(s[at], bias, at, form)
        b, *_, key = at
        own = form
        if form.ahead is not None:
            own = replace(form, ahead=form.ahead + lengths[b] - keys)
        score = _scored(s[at], bias, at, own)
        return tirx.Select(key < lengths[b], score, tirx.const(-inf, "float32"))

    s = te.compute(scores, product, name="S")
    x = te.compute(scores, scored, name="X")
    p, largest, total = _softmax(x, dtype)

    def weighted(b: Expr, h: Expr, i: Expr, c: Expr) -> Expr:
        return te.sum(p[b, h, i, j].astype("float32") * of_key(v, b, h, j, c), axis=[j])

    rows = scores[:3]
    t = te.compute((*rows, width), weighted, name="T")

    def result(*at: Expr) -> Expr:
        b, h, i, c = place(form.layout, *at)
        zero = tirx.const(0, "float32")
        value = tirx.Select(total[b, h, i] > zero, t[b, h, i, c] / total[b, h, i], zero)
        return value.astype(form.out_dtype)

    o = te.compute(place(form.layout, batch, heads, queries, width), result, name="O")
    return o, te.compute(rows, lambda *at: largest[at] + tirx.log(total[at]), name="L")


def _lengths(tensor: te.Tensor, layout: str) -> tuple[Expr, Expr, Expr, Expr]:
    """(batch, heads, length, depth)."""
    batch, one, other, depth = tensor.shape
    return (batch, one, other, depth) if layout == "bhsd" else (batch, other, one, depth)


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


def _length(name: str, value: Place) -> int | Var:
    if not isinstance(value, Var):
        if isinstance(value, Expr):
            raise ArgumentError(f"{name}: is a number or a symbol, a `tirx.Var`, not `{value}`")
        return check_extent(name, value)
    if str(value.ty) not in ("int32", "int64"):
        raise ArgumentError(f"{name}: is a symbol of int32 or int64, not of {value.ty}")
    return value


def _whole_pages(keys: Place, page_size: int) -> int | Var:
    """How many pages hold the most keys that a batch may have."""
    if page_size == 1:
        return _length("keys", keys)
    if isinstance(keys, tirx.Mul):
        for pages, size in ((keys.a, keys.b), (keys.b, keys.a)):
            if isinstance(pages, Var) and constant(size) == page_size:
                return _length("keys", pages)
    number = keys if isinstance(keys, Expr) else check_extent("keys", keys)
    if isinstance(number, Expr) or number % page_size:
        raise ArgumentError(
            f"keys: is a multiple of page_size, {page_size}, or a symbol times just that,"
            f" `n * {page_size}`; not {keys}"
        )
    return number // page_size


def _positive(name: str, value: float) -> float:
    """A number that float32 has, and whose inverse it has."""
    check_type(name, value, (int, float), "a positive number")
    if not _LEAST <= value <= 1 / _LEAST:
        given = described(value)
        raise ArgumentError(f"{name}: is a number from {_LEAST} to {1 / _LEAST}, not {given}")
    return float(value)
