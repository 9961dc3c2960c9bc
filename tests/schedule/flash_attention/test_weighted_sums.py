"""Weighted sums as people write them, and what is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from tvm import te, tirx
from tvm.tirx import Expr, PrimFunc

import mfmadsl
from mfmadsl import ScheduleError
from mfmadsl.schedule.flash_attention.score import seen_keys
from mfmadsl.schedule.flash_attention.weighted_sums.cut import weights_of
from mfmadsl.schedule.flash_attention.weighted_sums.reader import is_weighted, weighted_sums_of
from mfmadsl.schedule.flash_attention.weighted_sums.zeros import parted

Q, K, D, C = 40, 70, 32, 16
ZERO, ONE = (tirx.const(n, "float32") for n in (0, 1))
INF = tirx.const(-np.inf, "float32")


@dataclass(frozen=True)
class Written:
    """Weighted sums of blocks, each of which may be another one."""

    weight: Callable[..., Expr] = lambda s, *_: s
    rounded: Callable[..., Expr] = lambda p: p.astype("float16")
    result: Callable[..., Expr] = lambda t, *_: t
    total: str = "float32"
    key_type: str = "float16"

    def workload(self) -> PrimFunc:
        """Q, K, V and an array of a number for each key, to O."""
        q = te.placeholder((Q, D), "float16", "Q")
        k = te.placeholder((K, D), self.key_type, "K")
        v = te.placeholder((K, C), "float16", "V")
        decay = te.placeholder((K,), "float32", "decay")
        d = te.reduce_axis((0, D), "d")
        s = te.compute((Q, K), lambda i, j: te.sum(
            q[i, d].astype("float32") * k[j, d].astype("float32"), axis=[d]), "S")  # fmt: skip
        p = te.compute((Q, K), lambda i, j: self.rounded(self.weight(s[i, j], i, j, decay)), "P")
        j = te.reduce_axis((0, K), "j")
        t = te.compute((Q, C), lambda i, c: te.sum(
            p[i, j].astype(self.total) * v[j, c].astype(self.total), axis=[j]), "T")  # fmt: skip
        o = te.compute((Q, C), lambda i, c: self.result(t[i, c], s, i, c), "O")
        return te.create_prim_func([q, k, v, decay, o])


def behind(i: Expr, j: Expr) -> Expr:
    """A causal mask, in which the last query is at key 59."""
    return j <= i + 20


TAKEN: dict[str, tuple[Written, Callable[..., Any]]] = {
    "two products": (Written(), lambda s, i, j, m: s),
    "linear attention": (
        Written(lambda s, i, j, _: tirx.Select(behind(i, j), s, ZERO)),
        lambda s, i, j, m: s * (j <= i + 20),
    ),
    "a factor of 0 and 1": (
        Written(lambda s, i, j, _: s * tirx.Select(behind(i, j), ONE, ZERO)),
        lambda s, i, j, m: s * (j <= i + 20),
    ),
    "a condition as a number": (
        Written(lambda s, i, j, _: behind(i, j).astype("float32") * s),
        lambda s, i, j, m: s * (j <= i + 20),
    ),
    "first keys left out": (
        Written(lambda s, i, j, _: tirx.if_then_else(j > i + 20, s, ZERO)),
        lambda s, i, j, m: s * (j > i + 20),
    ),
    "a power of a masked score": (
        Written(lambda s, i, j, _: tirx.exp(
            tirx.Select(behind(i, j), s * tirx.const(0.1, "float32"), INF))),
        lambda s, i, j, m: np.exp(s * 0.1) * (j <= i + 20),
    ),
    "a decay of each key": (
        Written(lambda s, i, j, decay: tirx.Select(behind(i, j), s * decay[j], ZERO)),
        lambda s, i, j, m: s * m[j] * (j <= i + 20),
    ),
    "every other key": (
        Written(lambda s, i, j, _: tirx.Select((i + j) % 2 < 1, s, ZERO)),
        lambda s, i, j, m: s * ((i + j) % 2 < 1),
    ),
    "another value where masked": (
        Written(lambda s, i, j, _: tirx.Select(behind(i, j), s, ONE)),
        lambda s, i, j, m: np.where(j <= i + 20, s, 1),
    ),
    "squares": (Written(lambda s, *_: s * s), lambda s, i, j, m: s * s),
    "a root that is no number where it is masked": (
        Written(lambda s, i, j, _: tirx.Select(j < 50, s, ZERO) * tirx.sqrt(
            (tirx.const(50, "int32") - j).astype("float32"))),
        lambda s, i, j, m: np.sqrt(np.maximum(50.0 - j, 0)) * s,
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", list(TAKEN))
def test_what_is_written_is_computed(form: str) -> None:
    written, weight = TAKEN[form]
    workload = written.workload()
    assert is_weighted(workload)
    generator = np.random.default_rng(3)
    q, k, v = (
        generator.standard_normal(shape).astype(np.float16) for shape in ((Q, D), (K, D), (K, C))
    )
    decay = generator.uniform(0.5, 1, K).astype(np.float32)
    o = np.full((Q, C), 7, np.float32)
    kernel = mfmadsl.build(mfmadsl.attention_schedule(workload))
    assert kernel.remarks == ()
    mfmadsl.sanitize(kernel, [q, k, v, decay, o])
    i, j = np.arange(Q)[:, None], np.arange(K)[None]
    p = weight(q.astype(np.float64) @ k.T.astype(np.float64), i, j, decay.astype(np.float64))
    bound = np.abs(p) @ np.abs(v.astype(np.float64))
    assert (np.abs(o - p @ v.astype(np.float64)) <= 2.0**-10 * bound + 2.0**-16).all()


def _of_v(s: Expr, i: Expr, j: Expr, decay: te.Tensor) -> Expr:
    return tirx.if_then_else(j > 2, decay[j - 3], ZERO) * s


REFUSED = {
    "weights of float32": (Written(rounded=lambda p: p), "`T` multiplies weights of float32: cast"),
    "weights of bytes": (
        Written(rounded=lambda p: p.astype("int8").astype("float16")),
        "weights of float32 and float16 and int8",
    ),
    "sums of halves": (Written(total="float16"), "`T` has weights or sums that are not of float32"),
    "keys of another type": (Written(key_type="bfloat16"), "`S` multiplies bfloat16, and"),
    "a result of a product": (
        Written(result=lambda t, s, i, c: t + s[i, c]), "`O` is made of `S.*a result is of one sum",
    ),
    "a read under a condition": (Written(_of_v), "under a condition, where the array may have"),
}  # fmt: skip


@pytest.mark.parametrize("form", list(REFUSED))
def test_what_is_no_weighted_sum_is_refused(form: str) -> None:
    written, reason = REFUSED[form]
    with pytest.raises(ScheduleError, match=reason):
        mfmadsl.attention_schedule(written.workload())


def _sums(more: str) -> PrimFunc:
    """A weighted sum, and what a kernel does not have."""
    q, k = (te.placeholder((Q, D), "float16", name) for name in ("Q", "K"))
    v = te.placeholder((Q, C), "float16", "V")
    d, j, over = (te.reduce_axis((0, n)) for n in (D, Q, Q))
    s = te.compute((Q, Q), lambda i, j: te.sum(
        q[i, d].astype("float32") * k[j, d].astype("float32"), axis=[d]), "S")  # fmt: skip
    p = te.compute((Q, Q), lambda i, j: s[i, j].astype("float16"), "P")
    t = te.compute((Q, C), lambda i, c: te.sum(
        p[i, j].astype("float32") * v[j, c].astype("float32"), axis=[j]), "T")  # fmt: skip
    if more == "copy":
        return te.create_prim_func([q, k, v, t, te.compute((Q, D), lambda i, d: q[i, d], "R")])
    if more == "products":
        return te.create_prim_func([q, k, v, t, s])
    if more == "total":
        r = te.compute((Q,), lambda i: te.sum(s[i, over], axis=[over]), "R")
        return te.create_prim_func([q, k, v, t, r])
    e = te.reduce_axis((0, C))
    w = te.compute((Q, C), lambda i, c: t[i, c].astype("float16"), "W")
    x = te.compute((Q, Q), lambda i, j: te.sum(
        w[i, e].astype("float32") * v[j, e].astype("float32"), axis=[e]), "X")  # fmt: skip
    return te.create_prim_func([q, k, v, x])


OTHERS = {
    "copy": "block `R` is a result of no weighted sum", "products": "block `S` is a result of no",
    "total": "block `R` is no sum of products", "chain": "block `T` is a weighted sum that others",
}  # fmt: skip


@pytest.mark.parametrize("more", list(OTHERS))
def test_other_results_and_sums_are_refused(more: str) -> None:
    with pytest.raises(ScheduleError, match=OTHERS[more]):
        mfmadsl.attention_schedule(_sums(more))


S, ROW, KEY = tirx.Var("s", "float32"), tirx.Var("i", "int32"), tirx.Var("j", "int32")
ZEROS = [
    (tirx.Select(KEY <= ROW, S, ZERO), [KEY <= ROW], S),
    (S * tirx.Select(KEY <= ROW, ONE, ZERO), [KEY <= ROW], S),
    (tirx.Cast("float32", KEY <= ROW) * S, [KEY <= ROW], S),
    (tirx.Select(KEY <= ROW, S, ZERO) / S, [KEY <= ROW], S / S),
    (tirx.exp(tirx.Select(KEY <= ROW, S, INF)), [KEY <= ROW], tirx.exp(S)),
    (tirx.Select(tirx.all(KEY <= ROW, KEY > ROW - 3), S, ZERO), [KEY <= ROW, KEY > ROW - 3], S),
    (tirx.Select(KEY <= ROW, S, ONE), [], None),
    (S / tirx.Select(KEY <= ROW, S, ZERO), [], None),
    (tirx.Select(KEY <= ROW, S, ZERO) + ONE, [], None),
]  # fmt: skip


@pytest.mark.parametrize(("weight", "conditions", "value"), ZEROS, ids=[str(z[0]) for z in ZEROS])
def test_where_a_weight_is_zero(weight: Expr, conditions: list[Expr], value: Expr | None) -> None:
    found, rest = parted(weight)
    assert len(found) == len(conditions)
    assert all(map(tvm_ffi.structural_equal, found, conditions))
    assert tvm_ffi.structural_equal(rest, weight if value is None else value)


def test_a_condition_bounds_keys_of_either_side() -> None:
    dq, dkv = mfmadsl.attention_backward(1, 1, 64, 64, 16, causal=True)
    of_queries, of_keys = (weighted_sums_of(each) for each in (dq, dkv))
    for found, first, end in ((of_queries, False, True), (of_keys, True, False)):
        seen = seen_keys(weights_of(found).masks.value, found.axes)
        assert (seen.first is not None, seen.end is not None) == (first, end)
    assert [len(each.products) for each in (of_queries, of_keys)] == [2, 2]
    assert [len(each.sums) for each in (of_queries, of_keys)] == [1, 2]


@pytest.mark.parametrize("count", [0, 33, K])
def test_a_bias_and_how_many_keys_there_are(count: int) -> None:
    """Keys and values from `count` on are never read."""
    q, k = (te.placeholder((n, D), "float16", name) for n, name in ((Q, "Q"), (K, "K")))
    v = te.placeholder((K, C), "float16", "V")
    bias = te.placeholder((Q, K), "float32", "bias")
    lengths = te.placeholder((1,), "int32", "lengths")
    d, j = (te.reduce_axis((0, n)) for n in (D, K))
    s = te.compute((Q, K), lambda i, j: te.sum(
        q[i, d].astype("float32") * k[j, d].astype("float32"), axis=[d]), "S")  # fmt: skip

    def weight(i: Expr, j: Expr) -> Expr:
        return tirx.if_then_else(j < lengths[0], s[i, j] * bias[i, j], ZERO).astype("float16")

    p = te.compute((Q, K), weight, "P")
    o = te.compute((Q, C), lambda i, c: te.sum(
        p[i, j].astype("float32") * v[j, c].astype("float32"), axis=[j]), "O")  # fmt: skip
    kernel = mfmadsl.build(
        mfmadsl.attention_schedule(te.create_prim_func([q, k, v, bias, lengths, o]))
    )
    assert kernel.remarks == ()
    generator = np.random.default_rng(3)
    given = [generator.standard_normal((n, each)).astype(np.float16)
             for n, each in ((Q, D), (K, D), (K, C))]  # fmt: skip
    given[1][count:], given[2][count:] = np.nan, np.nan
    added = generator.standard_normal((Q, K)).astype(np.float32)
    found = np.full((Q, C), 7, np.float32)
    mfmadsl.sanitize(kernel, [*given, added, np.array([count], np.int32), found])
    a, b, c = (array.astype(np.float64) for array in given)
    weights = (a @ b[:count].T) * added[:, :count]
    bound = np.abs(weights) @ np.abs(c[:count])
    assert (np.abs(found - weights @ c[:count]) <= 2.0**-10 * bound + 2.0**-16).all()


@pytest.mark.parametrize("keys_first", [False, True])
def test_sums_over_heads_of_which_each_has_its_own_keys(keys_first: bool) -> None:
    heads, own = 3, [K, 0, 33]
    q, k = (te.placeholder((heads, n, D), "float16", name) for n, name in ((Q, "Q"), (K, "K")))
    v = te.placeholder((heads, K, C), "float16", "V")
    lengths = te.placeholder((heads,), "int32", "lengths")
    d, g, j = (te.reduce_axis((0, n)) for n in (D, heads, K))
    s = te.compute((heads, Q, K), lambda h, i, j: te.sum(
        q[h, i, d].astype("float32") * k[h, j, d].astype("float32"), axis=[d]), "S")  # fmt: skip
    p = te.compute((heads, Q, K), lambda h, i, j: tirx.if_then_else(
        j < lengths[h], s[h, i, j], ZERO).astype("float16"), "P")  # fmt: skip
    axes = [j, g] if keys_first else [g, j]
    o = te.compute((Q, C), lambda i, c: te.sum(
        p[g, i, j].astype("float32") * v[g, j, c].astype("float32"), axis=axes), "O")  # fmt: skip
    kernel = mfmadsl.build(mfmadsl.attention_schedule(te.create_prim_func([q, k, v, lengths, o])))
    assert kernel.remarks == ()
    generator = np.random.default_rng(3)
    given = [generator.standard_normal((heads, n, each)).astype(np.float16)
             for n, each in ((Q, D), (K, D), (K, C))]  # fmt: skip
    found = np.full((Q, C), 7, np.float32)
    mfmadsl.sanitize(kernel, [*given, np.array(own, np.int32), found])
    a, b, c = (array.astype(np.float64) for array in given)
    weights = np.einsum("hid,hjd->hij", a, b) * (np.arange(K) < np.array(own)[:, None, None])
    bound = np.einsum("hij,hjc->ic", np.abs(weights), np.abs(c))
    wanted = np.einsum("hij,hjc->ic", weights, c)
    assert (np.abs(found - wanted) <= 2.0**-10 * bound + 2.0**-16).all()
