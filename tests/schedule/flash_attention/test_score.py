"""What is read off a score: its factor, the keys that it bounds, and what it reads."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from tvm import tirx
from tvm.tirx import Expr

import mfmadsl
from mfmadsl.passes.tir.expression import numbers, substitute
from mfmadsl.schedule.flash_attention.reader import attention_of
from mfmadsl.schedule.flash_attention.score import score_of, seen_keys, unmasked

QUERY, KEY = tirx.Var("i", "int32"), tirx.Var("j", "int32")
S = tirx.Var("s", "float32")
NONE = tirx.const(-inf, "float32")

BOUNDS = [
    (KEY <= QUERY, None, QUERY + 1), (QUERY >= KEY, None, QUERY + 1),
    (KEY < QUERY + 5, None, QUERY + 5), (QUERY < KEY + 64, QUERY - 63, None),
    (KEY > QUERY - 3, QUERY - 2, None), (KEY >= QUERY, QUERY, None),
    (tirx.all(KEY <= QUERY, KEY > QUERY - 3), QUERY - 2, QUERY + 1),
    (KEY < 7, None, None), (KEY % 2 < 1, None, None), (QUERY < 3, None, None),
    (KEY * 2 <= QUERY, None, None),
    (KEY + QUERY < 9, None, None),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "first", "end"), BOUNDS, ids=[str(b[0]) for b in BOUNDS])
def test_bounds_that_move_with_the_query(
    condition: Expr, first: Expr | None, end: Expr | None
) -> None:
    value = tirx.Select(condition, S, NONE)
    seen = seen_keys(value, KEY, QUERY)
    for found, wanted in ((seen.first, first), (seen.end, end)):
        assert (found is None) == (wanted is None)
        if found is None or wanted is None:
            continue
        for i in range(20):
            at = {QUERY: tirx.const(i, "int32")}
            assert int(numbers(substitute(found, at), {})) == int(
                numbers(substitute(wanted, at), {})
            )
    is_bound = first is not None or end is not None
    assert bool(unmasked(value, KEY, QUERY).same_as(S)) == is_bound


def test_a_mask_by_a_finite_number_bounds_nothing() -> None:
    seen = seen_keys(tirx.Select(KEY <= QUERY, S, tirx.const(-1e9, "float32")), KEY, QUERY)
    assert (seen.first, seen.end) == (None, None)


def test_the_last_factor_is_taken_out_from_under_masks() -> None:
    workload = mfmadsl.attention(1, 1, 16, 16, 16, scale=0.3, causal=True, window=5)
    score = score_of(attention_of(workload))
    assert np.isclose(score.factor, 0.3)
    assert not score.is_plain
    assert unmasked(score.value, *_places(workload)).same_as(score.product)


def test_a_cap_is_the_factor_of_its_tanh() -> None:
    score = score_of(attention_of(mfmadsl.attention(1, 1, 16, 16, 16, cap=30.0)))
    assert np.isclose(score.factor, 30)


def test_reads_are_told_apart_by_what_they_are_of() -> None:
    score = score_of(attention_of(mfmadsl.attention(1, 1, 16, 16, 16, bias=True)))
    (read,) = score.reads
    assert (read.of_keys, read.of_queries, read.dtype) == (True, True, "float32")


def _places(workload: tirx.PrimFunc) -> tuple[tirx.Var, tirx.Var]:
    axes = attention_of(workload).axes
    return axes.key.var, axes.row.var
