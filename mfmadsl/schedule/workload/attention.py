"""Attention as a TVM workload: softmax(Q K^T * scale) V, with what may stand between."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import te, tirx
from tvm.tirx import Expr, PrimFunc, Var

from mfmadsl.argument import check_choice, check_extent, check_flag, check_type, described
from mfmadsl.error import ArgumentError
from mfmadsl.model import EIGHT_BIT_FLOATS
from mfmadsl.passes.tir.expression import constant
from mfmadsl.schedule.workload.attended import (
    AttentionForm,
    AttentionTensors,
    Place,
    Scales,
    Starts,
    attended,
    place,
)

TYPES = ("bfloat16", "float16", *EIGHT_BIT_FLOATS)
OUT_TYPES = ("bfloat16", "float16", "float32")
SCALES = ("head", "token")
_LEAST = 1e-30
_PAGE = 16
LONGEST = 1 << 30  # window: places of keys have 32 bits
_PACKED: dict[str | None, str] = {None: "", "queries": "q", "all": "qk"}
"""What lies one behind the other: Q, K and V."""

LAYOUTS = ("bhsd", "bshd")
"""Batch, head, place in the sequence, and depth, in the order in which they lie."""


def attention(
    batch: int | Var,
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
    kv_dtype: str | None = None,
    scales: str | None = None,
    packed: str | None = None,
) -> PrimFunc:
    """O = softmax(Q x K^T * scale) x V for each batch and head; scores and sums are float32.

    The parameters are Q, K, V, then the scales, the starts, the table, the lengths and the bias if
    there are such, O, and L with `log_sum`. They lie as `layout` says, K and V with `kv_heads`
    heads, of which each serves as many neighbouring heads of Q. Batch, queries and keys may be
    symbols. O has
    the type `dtype`, or float16 if that has eight bits, if `out_dtype` does not say another.

    K and V may have eight bits, `kv_dtype`, where Q has 16: they become `dtype` on their way.
    `scales` are arguments of float32, K_scale and V_scale, that K and V are multiplied with: for
    each "head" of them, or for each "token", where they lie as K and V without the depth. If Q has
    eight bits, too, Q_scale[head] comes before them, and there is no "token".

    With `lengths` a batch has lengths[batch] keys, and `keys` is the most that one may have. With
    `pages` K and V are so many pages of `page_size` keys (16 if not said) instead of batches, and
    key j of a batch is in page table[batch, j // page_size]; `keys` is a multiple of `page_size`,
    or a symbol times it. Lengths and table are int32. Of the table no more is read than a batch has
    keys for.

    With `packed`, "queries" or "all", the queries of all batches lie one behind the other, and
    `queries` is how many these are: batch b has those from q_starts[b] to q_starts[b + 1], of
    int32 [batch + 1], of which the first is 0 and none less than the one before. Q, O, L and the
    bias have no axis of batches. With "all" so do K and V, with k_starts. Rows of Q behind the last
    batch have no place in O.

    A score s becomes s * scale (1 / sqrt(depth) if none is given), then cap * tanh(s / cap), then
    has bias[batch, head, query, key] of float32 added. The last query stands at the last key: with
    `causal` a query sees no key behind its own place, and with `window` only so many up to it. A
    query that sees no key has zeros in O. L[batch, head, query] is the logarithm of the sum of
    exp(s), and -inf for such a query.

    Raises ArgumentError for extents that are no positive numbers, for heads that `kv_heads` does
    not divide, for keys that are not whole pages, and for types and layouts that are not known.
    """
    heads, depth = check_extent("heads", heads), check_extent("depth", depth)
    batch, queries = length_of("batch", batch), length_of("queries", queries)
    if pages is None and page_size is not None:
        raise ArgumentError("page_size: means nothing without `pages`, the number of them")
    size = check_extent("page_size", _PAGE if page_size is None else page_size)
    width = None if pages is None else _whole_pages(keys, size)
    most = length_of("keys", keys) if width is None else width * size
    columns = depth if value_depth is None else check_extent("value_depth", value_depth)
    shared = heads if kv_heads is None else check_extent("kv_heads", kv_heads)
    if heads % shared:
        raise ArgumentError(f"kv_heads: {shared} do not divide the {heads} heads of Q")
    kinds = _Types.checked(dtype, out_dtype, kv_dtype, scales)
    check_choice("layout", layout, LAYOUTS)
    flags = {"causal": causal, "bias": bias, "log_sum": log_sum, "lengths": lengths}
    for name, flag in flags.items():
        check_flag(name, flag)
    if window is not None and check_extent("window", window) > LONGEST:
        raise ArgumentError(f"window: is at most 2^30, not {window}")
    factor = depth**-0.5 if scale is None else positive("scale", scale)
    limit = None if cap is None else positive("cap", cap)

    _check_packed(packed, batch, lengths, pages)
    starts_count: Place = batch + 1
    if packed == "all" and isinstance(batch, Var):
        # Only its starts tell how many batches there are: their number is an extent by itself.
        starts_count = tirx.Var(f"{batch.name}_starts", str(batch.ty.dtype))
    own, of_keys = None if packed else batch, None if packed == "all" else batch
    q = te.placeholder(place(layout, own, heads, queries, depth), dtype, "Q")
    many, length = (of_keys, most) if pages is None else (length_of("pages", pages), size)
    k, v = (
        te.placeholder(place(layout, many, shared, length, each), kinds.kv, name)
        for name, each in (("K", depth), ("V", columns))
    )
    factors = kinds.scales_of(heads, shared, place(layout, many, shared, length, 1)[:-1])
    table = None if width is None else te.placeholder((batch, width), "int32", "table")
    known = te.placeholder((batch,), "int32", "lengths") if lengths else None
    of_bias = (heads, queries, most) if packed else (batch, heads, queries, most)
    added = te.placeholder(of_bias, "float32", "bias") if bias else None
    begin = [te.placeholder((starts_count,), "int32", f"{name}_starts") for name in _PACKED[packed]]
    starts = Starts(begin[0], begin[1] if packed == "all" else None) if packed else None
    ahead = most - queries if causal or window is not None else None
    form = AttentionForm(layout, factor, limit, ahead, window, kinds.out)
    tensors = AttentionTensors(q, k, v, added, table, known, factors, starts)
    o, logarithm = attended(tensors, form)
    scale_tensors = [] if factors is None else [factors.q, factors.k, factors.v]
    given = [q, k, v, *scale_tensors, *begin, table, known, added, o]
    parameters = [each for each in given if each is not None]
    return te.create_prim_func([*parameters, *([logarithm] if log_sum else [])])


def _check_packed(packed: str | None, batch: Place, lengths: bool, pages: int | Var | None) -> None:
    if packed is None:
        return
    check_choice("packed", packed, tuple(each for each in _PACKED if each))
    if constant(batch) == 1:
        raise ArgumentError(
            "packed: one batch has nothing behind it: leave it out, or make `batch` a symbol"
        )
    if packed == "all" and (lengths or pages is not None):
        other = "lengths" if lengths else "pages"
        raise ArgumentError(f'packed: "all" has no `{other}`: "queries" leaves keys as they are')


@dataclass(frozen=True)
class _Types:
    """The types of Q, of K and V, and of O, and what has scales."""

    q: str
    kv: str
    out: str
    scales: str | None

    @classmethod
    def checked(
        cls, dtype: str, out_dtype: str | None, kv_dtype: str | None, scales: str | None
    ) -> _Types:
        """The types that are asked for. Raises ArgumentError where no kernel has them."""
        check_type("dtype", dtype, str, "a str")
        if dtype == "float32":
            raise ArgumentError(
                "dtype: no kernel attends in float32; write two products and a softmax, or leave"
                " `nn.attention` to Relax"
            )
        check_choice("dtype", dtype, TYPES)
        is_small = dtype in EIGHT_BIT_FLOATS
        if out_dtype is None:
            out_dtype = "float16" if is_small else dtype
        check_choice("out_dtype", out_dtype, OUT_TYPES)
        kv_dtype = dtype if kv_dtype is None else kv_dtype
        if is_small and kv_dtype != dtype:
            raise ArgumentError(
                f"kv_dtype: with a dtype of eight bits K and V have that, {dtype}: leave it out, or"
                " take a dtype of 16 bits"
            )
        check_choice("kv_dtype", kv_dtype, (dtype, "int8", *EIGHT_BIT_FLOATS))
        if scales is not None:
            check_choice("scales", scales, SCALES)
            if kv_dtype in OUT_TYPES:
                raise ArgumentError(
                    f"scales: K and V of {kv_dtype} have none; `kv_dtype` names one of eight bits"
                )
            if is_small and scales == "token":
                raise ArgumentError(
                    f"scales: weights of {dtype} have no place for those of each token of V: take"
                    ' "head", or a `dtype` of 16 bits'
                )
        return cls(dtype, kv_dtype, out_dtype, scales)

    def scales_of(self, heads: int, kv_heads: int, places: tuple[Place, ...]) -> Scales | None:
        """The arguments that are scales."""
        if self.scales is None:
            return None
        shape = (kv_heads,) if self.scales == "head" else places
        k, v = (te.placeholder(shape, "float32", name) for name in ("K_scale", "V_scale"))
        is_small = self.q in EIGHT_BIT_FLOATS
        return Scales(te.placeholder((heads,), "float32", "Q_scale") if is_small else None, k, v)


def length_of(name: str, value: Place) -> int | Var:
    """A length that is a positive number or a symbol. Raises ArgumentError for another."""
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
        return length_of("keys", keys)
    if isinstance(keys, tirx.Mul):
        for pages, size in ((keys.a, keys.b), (keys.b, keys.a)):
            if isinstance(pages, Var) and constant(size) == page_size:
                return length_of("keys", pages)
    number = keys if isinstance(keys, Expr) else check_extent("keys", keys)
    if isinstance(number, Expr) or number % page_size:
        raise ArgumentError(
            f"keys: is a multiple of page_size, {page_size}, or a symbol times just that,"
            f" `n * {page_size}`; not {keys}"
        )
    return number // page_size


def positive(name: str, value: float) -> float:
    """A number that float32 has, and whose inverse it has."""
    check_type(name, value, (int, float), "a positive number")
    if not _LEAST <= value <= 1 / _LEAST:
        given = described(value)
        raise ArgumentError(f"{name}: is a number from {_LEAST} to {1 / _LEAST}, not {given}")
    return float(value)
