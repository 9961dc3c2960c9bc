"""Queries of batches that lie one behind the other, and keys that do so, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tvm import te, tirx
from tvm.tirx import Expr

import mfmadsl
from mfmadsl import ScheduleError
from mfmadsl.error import ArgumentError
from tests.schedule.flash_attention.packed_case import PackedCase

SOME = PackedCase(
    batch=4, heads=2, kv_heads=1, queries=150, keys=192, lengths=(192, 77, 0, 130),
    q_lengths=(70, 77, 3, 150),
)  # fmt: skip
FORMS = {
    "plain": SOME,
    "causal": replace(SOME, causal=True),
    "the last keys": replace(SOME, window=50, layout="bshd"),
    "a batch without queries": replace(SOME, causal=True, q_lengths=(0, 70, 0, 0)),
    "a query each": replace(SOME, causal=True, q_lengths=(1, 1, 1, 1)),
    "no queries": replace(SOME, q_lengths=(0, 0, 0, 0), behind=5),
    "rows behind the last batch": replace(SOME, causal=True, behind=40),
    "a bias": replace(SOME, bias=True, q_lengths=(40, 7, 0, 33)),
    "any number": replace(SOME, causal=True, symbolic="queries keys batch", index_type="int32"),
    "any number of 64 bits": replace(SOME, symbolic="queries keys batch"),
    "another width": replace(SOME, depth=80, value_depth=40, dtype="bfloat16", layout="bshd"),
    "bytes": replace(SOME, kv_dtype="int8", scales="token", layout="bshd"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("packed", ["queries", "all"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_each_batch_has_its_own_queries(form: PackedCase, packed: str, arch: str) -> None:
    assert replace(form, packed=packed).check(arch).remarks == ()


@pytest.mark.parametrize("page_size", [1, 16])
@pytest.mark.parametrize("form", [FORMS["causal"], FORMS["any number"]], ids=["number", "symbol"])
def test_keys_may_lie_in_pages(form: PackedCase, page_size: int) -> None:
    assert replace(form, page_size=page_size).check().remarks == ()


@pytest.mark.thorough
def test_eight_bits_are_multiplied() -> None:
    replace(SOME, dtype="float8_e4m3fnuz", scales="head", packed="all").check("gfx942")


BAD_STARTS = [
    [0, 900, -5, 30, 300], [5, 4, 3, 2, 1], [-(2**31), 2**31 - 1, 0, 0, 300],
    [300, 330, 390, 391, 399], [2**31 - 4, 2**31 - 1, 48, 0, 0],
]  # fmt: skip


@pytest.mark.parametrize("name", ["q_starts", "k_starts"])
def test_starts_that_are_none_lead_nowhere_else(name: str) -> None:
    """No row outside of the arrays is touched, whatever they say."""
    case = replace(SOME, causal=True, packed="all")
    kernel = mfmadsl.build(mfmadsl.attention_schedule(case.workload()))
    for starts in BAD_STARTS:
        arrays = case.arrays()
        arrays[name][:] = starts
        mfmadsl.sanitize(kernel, list(arrays.values()))


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"packed": "keys"}, "packed: "),
    ({"packed": True}, "packed: "),
    ({"packed": "all", "lengths": True}, 'packed: "all" has no `lengths`'),
    ({"packed": "all", "pages": 3}, 'packed: "all" has no `pages`'),
    ({"packed": "queries", "batch": 1}, "packed: one batch"),
]


@pytest.mark.parametrize(("changed", "reason"), REFUSED, ids=str)
def test_what_does_not_lie_so_is_refused(changed: dict[str, Any], reason: str) -> None:
    given: dict[str, Any] = {"batch": 2, "heads": 2, "queries": 4, "keys": 32, "depth": 16}
    with pytest.raises(ArgumentError, match=f"^{reason}"):
        mfmadsl.attention(**(given | changed))


def test_parts_of_keys_are_refused() -> None:
    workload = SOME.workload()
    tiling = replace(mfmadsl.attention_tiling(workload), splits=2)
    with pytest.raises(ScheduleError, match=r"tiling\.splits: is 1 where queries"):
        mfmadsl.attention_schedule(workload, tiling=tiling)


SIZES = 20, 40, 32  # rows, keys and depth


def own_workload(
    before: Callable[[Expr, Expr], Expr] = lambda end, row: end <= row,
    of_row: Callable[[te.Tensor, Expr], Expr] = lambda batch, i: batch[i],
    of_key: Callable[[te.Tensor, Expr, Expr], Expr] = lambda shift, b, j: j,
    scored: Callable[[te.Tensor, te.Tensor, Expr, Expr], Expr] | None = None,
    starts_type: str = "int32",
) -> tirx.PrimFunc:
    """Q, K, V, where batches begin, a number for each batch, and another for each key, to O."""
    rows, keys, depth = SIZES
    q = te.placeholder((rows, depth), "float16", "Q")
    k, v = (te.placeholder((3, keys, depth), "float16", name) for name in "KV")
    starts = te.placeholder((4,), starts_type, "starts")
    shift = te.placeholder((3,), "int32", "shift")
    bias = te.placeholder((2 * keys,), "float32", "bias")
    b, d, j1, j2, j3 = (te.reduce_axis((0, extent)) for extent in (2, depth, keys, keys, keys))
    one, none = tirx.const(1, "int32"), tirx.const(0, "int32")

    def counted(row: Expr) -> Expr:
        return te.sum(tirx.if_then_else(before(starts[b + 1], row), one, none), axis=[b])

    def product(left: Expr, right: Expr, axis: Expr) -> Expr:
        return te.sum(left.astype("float32") * right.astype("float32"), axis=[axis])

    batch = te.compute((rows + 1,), counted, "BATCH")

    def key(i: Expr, j: Expr) -> tuple[Expr, Expr]:
        own = of_row(batch, i)
        return own, of_key(shift, own, j)

    s = te.compute((rows, keys), lambda i, j: product(q[i, d], k[(*key(i, j), d)], d))
    x = s
    if scored is not None:
        x = te.compute(s.shape, lambda i, j: s[i, j] + scored(bias, shift, of_row(batch, i), j))
    most = te.compute((rows,), lambda i: te.max(x[i, j1], axis=[j1]))
    e = te.compute(s.shape, lambda i, j: tirx.exp(x[i, j] - most[i]))
    total = te.compute((rows,), lambda i: te.sum(e[i, j2], axis=[j2]))
    p = te.compute(s.shape, lambda i, j: e[i, j].astype("float16"))
    t = te.compute(q.shape, lambda i, c: product(p[i, j3], v[(*key(i, j3), c)], j3))
    o = te.compute(q.shape, lambda i, c: t[i, c] / total[i])
    return te.create_prim_func([q, k, v, starts, shift, bias, o])


KEYS = np.arange(SIZES[1])
OWN: dict[str, tuple[dict[str, Any], Callable[..., Any], Callable[..., Any]]] = {
    "plain": ({}, lambda shift: KEYS, lambda bias, shift: 0),
    "keys that are shifted either way": (
        {"of_key": lambda shift, b, j: tirx.floormod(j + shift[b] + 40, 40)},
        lambda shift: (KEYS + shift) % 40, lambda bias, shift: 0,
    ),
    "a bias that is shifted either way": (
        {"scored": lambda bias, shift, b, j: bias[j + shift[b] + 8]},
        lambda shift: KEYS, lambda bias, shift: bias[KEYS + shift + 8],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(OWN))
def test_workloads_of_ones_own_are_taken(name: str) -> None:
    changed, key, more = OWN[name]
    kernel = mfmadsl.build(mfmadsl.attention_schedule(own_workload(**changed)))
    generator = np.random.default_rng(0)
    rows, keys, depth = SIZES
    q = generator.standard_normal((rows, depth)).astype(np.float16)
    k, v = generator.standard_normal((2, 3, keys, depth)).astype(np.float16)
    bias = generator.standard_normal(2 * keys).astype(np.float32)
    starts, shift = np.array([0, 8, 12, 20], np.int32), np.array([-7, 5, -2], np.int32)
    o = np.full((rows, depth), 7, np.float32)
    mfmadsl.sanitize(kernel, [q, k, v, starts, shift, bias, o])
    for b in range(3):
        own, places = slice(starts[b], starts[b + 1]), key(int(shift[b]))
        s = q[own].astype(float) @ k[b, places].astype(float).T + more(bias, int(shift[b]))
        p = np.exp(s - s.max(-1, keepdims=True))
        wanted = p @ v[b, places].astype(float) / p.sum(-1, keepdims=True)
        assert np.abs(o[own] - wanted).max() < 2.0**-7


NO_BATCHES: dict[str, tuple[dict[str, Any], str]] = {
    "of another row": (
        {"of_row": lambda batch, i: batch[i + 1]}, "the batch of another row than its own",
    ),
    "that end at a row": ({"before": lambda end, row: end < row}, "`BATCH` does not count"),
    "cut to bytes": (
        {"before": lambda end, row: end.astype("int8") <= row.astype("int8")},
        "`BATCH` does not count",
    ),
    "that begin at a fraction": (
        {"starts_type": "float32", "before": lambda end, row: end <= row.astype("float32")},
        "`BATCH` does not count",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(NO_BATCHES))
def test_other_batches_are_refused(name: str) -> None:
    changed, reason = NO_BATCHES[name]
    with pytest.raises(ScheduleError, match=reason):
        mfmadsl.attention_schedule(own_workload(**changed))


@pytest.mark.parametrize("rows", [300, 5])
def test_rows_without_a_batch_stay_as_they_are(rows: int) -> None:
    """Where rows are few, nothing is launched."""
    case = replace(SOME, symbolic="queries keys batch", packed="all")
    kernel = mfmadsl.build(mfmadsl.attention_schedule(case.workload()))
    arrays = case.arrays()
    for name in ("q_starts", "k_starts"):
        arrays[name] = arrays[name][:1]
    for name in ("q", "o", "l"):
        arrays[name] = np.ascontiguousarray(arrays[name][:, :rows])
    assert len(kernel.launches(list(arrays.values()))) == (rows > 128)
    mfmadsl.sanitize(kernel, list(arrays.values()))
    assert (arrays["o"] == 7).all()
