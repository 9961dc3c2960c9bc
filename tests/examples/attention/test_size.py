"""Sizes as options have them, the work of an attention, and what NumPy makes of it."""

from __future__ import annotations

from argparse import ArgumentTypeError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.attention.size import Size, attended, parsed_size

EXAMPLE = Size(16, 2048, 2048, 128)
LENGTHS = st.integers(1, 12)


@given(LENGTHS, LENGTHS, LENGTHS, LENGTHS)
def test_a_size_is_read_as_it_is_written(heads: int, queries: int, keys: int, depth: int) -> None:
    size = Size(heads, queries, keys, depth)
    assert parsed_size(str(size), EXAMPLE) == size


@pytest.mark.parametrize("text", ["", "16x2048x128", "0x1x1x1", "1x1x1x0", "axbxcxd", "1x1x1x1x1"])
def test_others_are_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"is no size such as 16x2048x2048x128"):
        parsed_size(text, EXAMPLE)


@given(LENGTHS, LENGTHS)
def test_masked_scores_are_no_work(queries: int, keys: int) -> None:
    seen = np.arange(keys) <= np.arange(queries)[:, None] + keys - queries
    size = Size(3, queries, keys, 5)
    assert size.operations(causal=True) == 4 * 3 * 5 * int(seen.sum())
    assert size.operations(causal=False) == 4 * 3 * 5 * seen.size


def test_arguments_are_as_large_as_they_say_and_the_result_is_not_there_yet() -> None:
    size = Size(2, 3, 5, 4)
    q, k, v, o = size.arrays()
    assert (q.shape, k.shape, v.shape, o.shape) == (
        (1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4), (1, 2, 3, 4),
    )  # fmt: skip
    assert np.isnan(o).all()
    assert [each.shape for each in size.zeros()] == [each.shape for each in (q, k, v, o)]


def test_a_query_takes_the_mean_of_values_by_the_exponentials_of_its_scores() -> None:
    q, k, v, _ = Size(1, 2, 3, 4).arrays()
    weights = [np.exp(np.dot(q[0, 0, 1].astype(float), key) / 2) for key in k[0, 0].astype(float)]
    expected = sum(w * x for w, x in zip(weights, v[0, 0].astype(float), strict=True))
    np.testing.assert_allclose(attended(q, k, v, False)[0, 0, 1], expected / sum(weights))


def test_the_last_query_stands_at_the_last_key_and_one_without_a_key_has_zeros() -> None:
    q, k, v, _ = Size(1, 3, 2, 4).arrays()
    found = attended(q, k, v, causal=True)
    assert not found[0, 0, 0].any()
    np.testing.assert_allclose(found[0, 0, 1], v[0, 0, 0].astype(float))
    np.testing.assert_allclose(found[0, 0, 2], attended(q, k, v, causal=False)[0, 0, 2])
