"""What is read off a score: its factor, the keys that it bounds, and what it reads."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from tvm import tirx
from tvm.sym import Analyzer
from tvm.tirx import Expr

import mfmadsl
from mfmadsl.passes.tir.expression import loads_of, substitute
from mfmadsl.schedule.flash_attention.described import Axis
from mfmadsl.schedule.flash_attention.reader import attention_of
from mfmadsl.schedule.flash_attention.score import score_of, seen_keys, unmasked

QUERY, KEY = tirx.Var("i", "int32"), tirx.Var("j", "int32")
S = tirx.Var("s", "float32")
LENGTHS = tirx.decl_buffer((4,), "int32", "lengths")
NONE = tirx.const(-inf, "float32")
_EXTENT = tirx.const(64, "int32")
AXES = replace(
    attention_of(mfmadsl.attention(1, 1, 64, 64, 16)).axes,
    row=Axis(QUERY, _EXTENT), key=Axis(KEY, _EXTENT),
)  # fmt: skip

BOUNDS = [
    (KEY <= QUERY, None, QUERY + 1), (QUERY >= KEY, None, QUERY + 1),
    (KEY < QUERY + 5, None, QUERY + 5), (QUERY < KEY + 64, QUERY - 63, None),
    (KEY > QUERY - 3, QUERY - 2, None), (KEY >= QUERY, QUERY, None),
    (tirx.all(KEY <= QUERY, KEY > QUERY - 3), QUERY - 2, QUERY + 1),
    (KEY < 7, None, 7), (LENGTHS[1] <= KEY, LENGTHS[1], None),
    (KEY % 2 < 1, None, None), (QUERY < 3, None, None),
    (KEY * 2 <= QUERY, None, None),
    (KEY + QUERY < 9, None, None),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "first", "end"), BOUNDS, ids=[str(b[0]) for b in BOUNDS])
def test_keys_that_are_seen(condition: Expr, first: Expr | None, end: Any) -> None:
    value = tirx.Select(condition, S, NONE)
    seen = seen_keys(value, AXES)
    for found, wanted in ((seen.first, first), (seen.end, end)):
        assert (found is None) == (wanted is None)
        if found is None or wanted is None:
            continue
        for i in range(20):
            at = {QUERY: tirx.const(i, "int32")}
            assert tvm_ffi.structural_equal(
                Analyzer().simplify(substitute(found, at)),
                Analyzer().simplify(substitute(tirx.convert(wanted), at)),
            )
    is_bound = first is not None or end is not None
    assert bool(unmasked(value, AXES).same_as(S)) == is_bound


def test_a_mask_by_a_finite_number_bounds_nothing() -> None:
    seen = seen_keys(tirx.Select(KEY <= QUERY, S, tirx.const(-1e9, "float32")), AXES)
    assert (seen.first, seen.end) == (None, None)


def test_the_last_factor_is_taken_out_from_under_masks() -> None:
    workload = mfmadsl.attention(1, 1, 16, 16, 16, scale=0.3, causal=True, window=5)
    found = attention_of(workload)
    score = score_of(found)
    assert np.isclose(score.factor, 0.3)
    assert not score.is_plain
    assert unmasked(score.value, found.axes).same_as(score.product)


@pytest.mark.parametrize("causal", [False, True])
def test_what_ends_for_all_queries_alike_is_how_many_keys_there_are(causal: bool) -> None:
    """It is asked no more, and its array is not read for each score."""
    workload = mfmadsl.attention(3, 1, 16, 64, 16, lengths=True, causal=causal)
    found = attention_of(workload)
    score = score_of(found)
    assert score.count is not None
    (load,) = loads_of(score.count)
    assert (load.source.name, load.indices[0]) == ("lengths", found.axes.batch[0].var)
    assert len(score.reads) == causal  # where the last query stands
    assert (seen_keys(score.value, found.axes).end is not None) == causal
    if not causal:
        assert score.value.same_as(score.product)


def test_a_count_of_each_query_is_a_mask() -> None:
    counts = tirx.decl_buffer((64,), "int32", "counts")
    value = tirx.Select(counts[QUERY] > KEY, S, NONE)
    assert seen_keys(value, AXES).end is None
    assert tvm_ffi.structural_equal(unmasked(value, AXES), value)


def test_a_cap_is_the_factor_of_its_tanh() -> None:
    score = score_of(attention_of(mfmadsl.attention(1, 1, 16, 16, 16, cap=30.0)))
    assert np.isclose(score.factor, 30)


def test_reads_are_told_apart_by_what_they_are_of() -> None:
    score = score_of(attention_of(mfmadsl.attention(1, 1, 16, 16, 16, bias=True)))
    (read,) = score.reads
    assert (read.of_keys, read.of_queries, read.dtype) == (True, True, "float32")
