"""The backward pass of attention as TVM workloads: the gradients of Q, and of K and V."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import te, tirx
from tvm.tirx import Expr, PrimFunc, Var

from mfmadsl.argument import check_choice, check_extent, check_flag
from mfmadsl.error import ArgumentError
from mfmadsl.schedule.workload.attended import Place, place
from mfmadsl.schedule.workload.attention import (
    LAYOUTS,
    LONGEST,
    OUT_TYPES,
    length_of,
    positive,
)

TYPES = ("bfloat16", "float16")


def attention_backward(
    batch: int | Var,
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
) -> tuple[PrimFunc, PrimFunc]:
    """(dQ, dK and dV): the gradients of O = softmax(Q x K^T * scale) x V, of that of O.

    The arguments are those of `attention`, which has to be called with the same ones and with
    `log_sum`. The parameters of both functions are Q, K, V, dO, L and D, then dQ, or dK and dV. dO
    lies as O does, and each gradient as what it is of. L[batch, head, query] is the result of
    `attention`, and D[batch, head, query] the sum of dO * O over columns, both of float32.
    Gradients have the type `dtype` if `out_dtype` does not say another.

    With P = exp(Q x K^T * scale - L) and W = P * (dO x V^T - D), each rounded to `dtype` where it
    is multiplied, dV = P^T x dO, dQ = W x K * scale, and dK = W^T x Q * scale. Where a query does
    not see a key, P is 0, also if it sees none, of which L is -inf. With `kv_heads`, dK and dV are
    summed up over the heads that share them.

    Raises ArgumentError as `attention` does.
    """
    form = _Form(
        length_of("batch", batch), check_extent("heads", heads),
        check_extent("kv_heads", heads if kv_heads is None else kv_heads),
        length_of("queries", queries), length_of("keys", keys), check_extent("depth", depth),
        check_extent("value_depth", depth if value_depth is None else value_depth),
        dtype, dtype if out_dtype is None else out_dtype, layout,
        float(depth**-0.5) if scale is None else positive("scale", scale), causal, window,
    )  # fmt: skip
    if form.heads % form.shared:
        raise ArgumentError(f"kv_heads: {form.shared} do not divide the {form.heads} heads of Q")
    check_choice("dtype", dtype, TYPES)
    check_choice("out_dtype", form.out_dtype, OUT_TYPES)
    check_choice("layout", layout, LAYOUTS)
    check_flag("causal", causal)
    if window is not None and check_extent("window", window) > LONGEST:
        raise ArgumentError(f"window: is at most 2^30, not {window}")
    return _of_queries(form), _of_keys(form)


@dataclass(frozen=True)
class _Form:
    """The sizes of an attention, and what it does with scores."""

    batch: Place
    heads: int
    shared: int
    queries: Place
    keys: Place
    depth: int
    columns: int
    dtype: str
    out_dtype: str
    layout: str
    scale: float
    causal: bool
    window: int | None

    def seen(self, i: Expr, j: Expr) -> list[Expr]:
        """The conditions under which query i sees key j."""
        last = i + (self.keys - self.queries)
        found = [j <= last] if self.causal or self.window is not None else []
        return found if self.window is None else [*found, j > last - self.window]

    def place(self, b: Expr, h: Expr, s: Place, d: Place) -> tuple[Place, ...]:
        """Indices in the layout."""
        return place(self.layout, b, h, s, d)

    def shared_head(self, h: Expr) -> Expr:
        """The head of K and V that one of Q has."""
        return tirx.floordiv(h, self.heads // self.shared)


@dataclass(frozen=True)
class _Given:
    """The arguments."""

    q: te.Tensor
    k: te.Tensor
    v: te.Tensor
    d_o: te.Tensor
    log_sum: te.Tensor
    d: te.Tensor

    @classmethod
    def of(cls, form: _Form) -> _Given:
        """New ones."""

        def array(name: str, heads: int, length: Place, width: int) -> te.Tensor:
            shape = place(form.layout, form.batch, heads, length, width)
            return te.placeholder(shape, form.dtype, name)

        rows = (form.batch, form.heads, form.queries)
        return cls(
            array("Q", form.heads, form.queries, form.depth),
            array("K", form.shared, form.keys, form.depth),
            array("V", form.shared, form.keys, form.columns),
            array("dO", form.heads, form.queries, form.columns),
            te.placeholder(rows, "float32", "L"),
            te.placeholder(rows, "float32", "D"),
        )

    @property
    def all(self) -> list[te.Tensor]:
        """All of them, in order."""
        return [self.q, self.k, self.v, self.d_o, self.log_sum, self.d]


def _weights(given: _Given, form: _Form) -> tuple[te.Tensor, te.Tensor]:
    """(P, W) of all queries and keys, rounded."""
    shape = (form.batch, form.heads, form.queries, form.keys)
    d = te.reduce_axis((0, form.depth), "d")
    c = te.reduce_axis((0, form.columns), "c")

    def product(one: te.Tensor, other: te.Tensor, over: Place, at: Sequence[Expr]) -> Expr:
        b, h, i, j = at
        left = one[form.place(b, h, i, over)].astype("float32")
        right = other[form.place(b, form.shared_head(h), j, over)].astype("float32")
        return te.sum(left * right, axis=[over])

    s = te.compute(shape, lambda *at: product(given.q, given.k, d, at), "S")
    t = te.compute(shape, lambda *at: product(given.d_o, given.v, c, at), "dP")

    def power(*at: Expr) -> Expr:
        score = s[at] * tirx.const(form.scale, "float32")
        value: Expr = tirx.exp(score - given.log_sum[at[:-1]])
        for condition in form.seen(*at[2:]):
            value = tirx.Select(condition, value, tirx.const(0, "float32"))
        return value

    p = te.compute(shape, power, "E")
    w = te.compute(shape, lambda *at: (p[at] * (t[at] - given.d[at[:-1]])).astype(form.dtype), "W")
    return te.compute(shape, lambda *at: p[at].astype(form.dtype), "P"), w


def _of_queries(form: _Form) -> PrimFunc:
    """dQ."""
    given = _Given.of(form)
    _, w = _weights(given, form)
    j = te.reduce_axis((0, form.keys), "j")

    def weighted(b: Expr, h: Expr, i: Expr, d: Expr) -> Expr:
        key = given.k[form.place(b, form.shared_head(h), j, d)]
        return te.sum(w[b, h, i, j].astype("float32") * key.astype("float32"), axis=[j])

    shape = (form.batch, form.heads, form.queries, form.depth)
    total = te.compute(shape, weighted, "dQ_sum")
    return _function(given, form, [(total, form.heads, "dQ", form.scale)])


def _of_keys(form: _Form) -> PrimFunc:
    """dK and dV."""
    given = _Given.of(form)
    p, w = _weights(given, form)

    group = form.heads // form.shared

    def total(weight: te.Tensor, other: te.Tensor, width: int, name: str) -> te.Tensor:
        g = te.reduce_axis((0, group), "g")
        i = te.reduce_axis((0, form.queries), "i")

        def weighted(b: Expr, h: Expr, j: Expr, d: Expr) -> Expr:
            own = h if group == 1 else h * group + g
            row = other[form.place(b, own, i, d)]
            term = weight[b, own, i, j].astype("float32") * row.astype("float32")
            return te.sum(term, axis=[i] if group == 1 else [g, i])

        return te.compute((form.batch, form.shared, form.keys, width), weighted, name)

    dk, dv = (
        total(*each)
        for each in ((w, given.q, form.depth, "dK_sum"), (p, given.d_o, form.columns, "dV_sum"))
    )
    return _function(
        given, form, [(dk, form.shared, "dK", form.scale), (dv, form.shared, "dV", 1.0)]
    )


def _function(
    given: _Given, form: _Form, sums: list[tuple[te.Tensor, int, str, float]]
) -> PrimFunc:
    """A function of the arguments that stores sums, each times a number, as they lie."""
    results = [_result(form, *each) for each in sums]
    return te.create_prim_func([*given.all, *results])


def _result(form: _Form, total: te.Tensor, heads: int, name: str, scale: float) -> te.Tensor:
    _, _, length, width = total.shape

    def value(*at: Expr) -> Expr:
        b, one, other, d = at
        h, s = (one, other) if form.layout == "bhsd" else (other, one)
        found = total[b, h, s, d]
        whole: Expr = found if scale == 1 else found * tirx.const(scale, "float32")
        return whole.astype(form.out_dtype)

    shape = place(form.layout, form.batch, heads, length, width)
    return te.compute(shape, value, name)
