"""Queries of batches that lie one behind the other, and keys that do so, too."""

from __future__ import annotations

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


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("packed", ["queries", "all"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_each_batch_has_its_own_queries(form: PackedCase, packed: str, arch: str) -> None:
    assert replace(form, packed=packed).check(arch).remarks == ()


@pytest.mark.parametrize("page_size", [1, 16])
@pytest.mark.parametrize("form", [FORMS["causal"], FORMS["any number"]], ids=["number", "symbol"])
def test_keys_may_lie_in_pages(form: PackedCase, page_size: int) -> None:
    assert replace(form, page_size=page_size).check().remarks == ()


def test_eight_bits_are_multiplied() -> None:
    replace(SOME, dtype="float8_e4m3fnuz", scales="head", packed="all").check("gfx942")


def test_starts_that_are_none_lead_nowhere_else() -> None:
    """No row outside of the array is touched, whatever they say."""
    case = replace(SOME, causal=True)
    kernel = mfmadsl.build(mfmadsl.attention_schedule(case.workload()))
    for starts in ([0, 900, -5, 30, 300], [5, 4, 3, 2, 1], [-(2**31), 2**31 - 1, 0, 0, 300]):
        arrays = case.arrays()
        arrays["q_starts"][:] = starts
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


def batches_of(shift: int) -> tirx.PrimFunc:
    """An attention whose query i has the keys of the batch of row i + `shift`."""
    q = te.placeholder((20, 32), "float16", "Q")
    k, v = (te.placeholder((3, 40, 32), "float16", name) for name in "KV")
    starts = te.placeholder((4,), "int32", "starts")
    b, d, j1, j2, j3 = (te.reduce_axis((0, extent)) for extent in (2, 32, 40, 40, 40))
    one, none = tirx.const(1, "int32"), tirx.const(0, "int32")

    def before(row: Expr) -> Expr:
        return te.sum(tirx.if_then_else(starts[b + 1] <= row, one, none), axis=[b])

    def product(left: Expr, right: Expr, axis: Expr) -> Expr:
        return te.sum(left.astype("float32") * right.astype("float32"), axis=[axis])

    batch = te.compute((21,), before)
    s = te.compute((20, 40), lambda i, j: product(q[i, d], k[batch[i + shift], j, d], d))
    most = te.compute((20,), lambda i: te.max(s[i, j1], axis=[j1]))
    e = te.compute((20, 40), lambda i, j: tirx.exp(s[i, j] - most[i]))
    total = te.compute((20,), lambda i: te.sum(e[i, j2], axis=[j2]))
    p = te.compute((20, 40), lambda i, j: e[i, j].astype("float16"))
    t = te.compute((20, 32), lambda i, c: product(p[i, j3], v[batch[i + shift], j3, c], j3))
    o = te.compute((20, 32), lambda i, c: t[i, c] / total[i])
    return te.create_prim_func([q, k, v, starts, o])


def test_workloads_of_ones_own_are_taken() -> None:
    kernel = mfmadsl.build(mfmadsl.attention_schedule(batches_of(0)))
    generator = np.random.default_rng(0)
    q = generator.standard_normal((20, 32)).astype(np.float16)
    k, v = generator.standard_normal((2, 3, 40, 32)).astype(np.float16)
    o, starts = np.full((20, 32), 7, np.float32), np.array([0, 12, 12, 20], np.int32)
    mfmadsl.sanitize(kernel, [q, k, v, starts, o])
    for rows, b in ((slice(0, 12), 0), (slice(12, 20), 2)):
        s = q[rows].astype(float) @ k[b].astype(float).T
        p = np.exp(s - s.max(-1, keepdims=True))
        wanted = p @ v[b].astype(float) / p.sum(-1, keepdims=True)
        assert np.abs(o[rows] - wanted).max() < 2.0**-8


def test_the_batch_of_another_row_is_refused() -> None:
    with pytest.raises(ScheduleError, match="the batch of another row than its own"):
        mfmadsl.attention_schedule(batches_of(1))
