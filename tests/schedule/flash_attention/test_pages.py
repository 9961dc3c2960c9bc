"""Attention on keys and values that lie in pages, under the sanitizer, against NumPy."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from tvm import te, tirx
from tvm.tirx import Expr, PrimFunc

import mfmadsl

BATCH, KEYS, DEPTH, PAGES = 2, 192, 64, 40


def workload(queries: int, page: int) -> PrimFunc:
    """Q, pages of K and of V, the pages of each batch, how many keys it has, to O."""
    q = te.placeholder((BATCH, queries, DEPTH), "float16", "Q")
    k, v = (te.placeholder((PAGES, page, DEPTH), "float16", name) for name in ("K", "V"))
    table = te.placeholder((BATCH, KEYS // page), "int32", "table")
    lengths = te.placeholder((BATCH,), "int32", "lengths")
    rows, scores = (BATCH, queries), (BATCH, queries, KEYS)

    def of(pages: te.Tensor, b: Expr, key: Expr, column: Expr) -> Expr:
        return pages[table[b, key // page], key % page, column].astype("float32")

    d, over = te.reduce_axis((0, DEPTH), "d"), te.reduce_axis((0, KEYS), "j")
    s = te.compute(scores, lambda b, i, j: te.sum(
        q[b, i, d].astype("float32") * of(k, b, j, d), axis=[d]), "S")  # fmt: skip
    masked = tirx.const(-inf, "float32")
    x = te.compute(scores, lambda b, i, j: tirx.Select(j < lengths[b], s[b, i, j], masked), "X")
    largest = te.compute(rows, lambda b, i: te.max(x[b, i, over], axis=[over]), "row_max")
    e = te.compute(scores, lambda b, i, j: tirx.exp(x[b, i, j] - largest[b, i]), "E")
    over = te.reduce_axis((0, KEYS), "j")
    total = te.compute(rows, lambda b, i: te.sum(e[b, i, over], axis=[over]), "row_sum")
    p = te.compute(scores, lambda *at: e[at].astype("float16"), "P")
    j = te.reduce_axis((0, KEYS), "j")
    t = te.compute((*rows, DEPTH), lambda b, i, c: te.sum(
        p[b, i, j].astype("float32") * of(v, b, j, c), axis=[j]), "T")  # fmt: skip
    o = te.compute((*rows, DEPTH), lambda b, i, c: t[b, i, c] / total[b, i], "O")
    return te.create_prim_func([q, k, v, table, lengths, o])


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize(("queries", "page"), [(1, 16), (64, 4), (40, 64)])
def test_pages_are_read_an_iteration_ahead(queries: int, page: int, arch: str) -> None:
    function = workload(queries, page)
    kernel = mfmadsl.build(mfmadsl.attention_schedule(function, arch), arch)
    assert kernel.remarks == ()  # all loops over keys went through the pipeline
    rng = np.random.default_rng(queries + page)
    q = rng.standard_normal((BATCH, queries, DEPTH)).astype(np.float16)
    k, v = (rng.standard_normal((PAGES, page, DEPTH)).astype(np.float16) for _ in "kv")
    table = rng.integers(0, PAGES, (BATCH, KEYS // page)).astype(np.int32)
    lengths = np.array([KEYS, 77], np.int32)
    o = np.zeros((BATCH, queries, DEPTH), np.float32)
    mfmadsl.sanitize(kernel, [q, k, v, table, lengths, o])
    for b, length in enumerate(lengths):
        used = table[b, : -(-length // page)]
        keys, values = (x[used].reshape(-1, DEPTH)[:length].astype(float) for x in (k, v))
        s = q[b].astype(float) @ keys.T
        p = np.exp(s - s.max(-1, keepdims=True))
        expected = p / p.sum(-1, keepdims=True) @ values
        assert np.abs(o[b] - expected).max() < 3e-3
