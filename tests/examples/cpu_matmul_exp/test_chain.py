"""The chain's size, its inputs, and what float64 makes of them."""

from __future__ import annotations

from argparse import ArgumentTypeError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.cpu_matmul_exp.chain import FULL, Size, inputs, parsed_size, with_numpy
from examples.cpu_matmul_exp.check import EXP, expected

DIMENSION = st.integers(1, 40)


def test_a_size_is_four_numbers() -> None:
    assert parsed_size("1024x2048x1024x3072") == FULL
    assert str(FULL) == "1024x2048x1024x3072"
    assert FULL.multiply_adds == 1024 * 2048 * 1024 + 1024 * 1024 * 3072
    assert Size(1, 2, 3, 4).gigaflops == pytest.approx(2 * (6 + 12) / 1e9)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("64x64x64", "no size MxKxNxP such as 1024x2048x1024x3072"),
        ("64x64x64x-1", "no size"),
        ("", "no size"),
        ("64x64x64x64x64", "no size"),
        ("64 x 64 x 64 x 64", "no size"),
        ("0x64x64x64", "each of M, K, N and P is at least 1"),
        ("64x64x64x0", "at least 1"),
        ("9999999x9999999x1x1", "a matrix has more than 67108864 elements"),
        ("1x1x1x99999999", "no size"),
        ("8192x8192x8192x8192", "more than 68719476736 multiply-adds"),
    ],
)
def test_another_size_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ArgumentTypeError, match=sentence):
        parsed_size(text)


def test_inputs_are_such_that_no_sum_of_the_first_product_is_rounded() -> None:
    a, b, c = inputs(Size(24, 500, 20, 30))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    for order in (slice(None), slice(None, None, -1)):
        found = np.zeros((24, 20), np.float32)
        for k in range(500)[order]:
            found += np.outer(a[:, k], b[k])
        assert (found == exact).all()
    assert 0.4 < exact.std() < 1.1
    assert (c >= 0).all()
    assert (c < 1).all()


def test_no_row_or_column_is_like_another() -> None:
    for matrix in inputs(Size(24, 500, 20, 30)):
        for rows in (matrix, matrix.T):
            assert len(np.unique(rows, axis=0)) == len(rows)


@settings(max_examples=30)
@given(DIMENSION, DIMENSION, DIMENSION, DIMENSION, st.integers(0, 2**32), st.floats(0.01, 1.25))
def test_numpy_keeps_within_what_is_allowed(
    m: int, k: int, n: int, p: int, seed: int, scale: float
) -> None:
    """Of inputs whose sums are rounded, too, and small enough that exp is finite."""
    generator = np.random.default_rng(seed)
    a, b, c = (
        (generator.standard_normal(shape) * scale).astype(np.float32)
        for shape in ((m, k), (k, n), (n, p))
    )
    e, f = np.empty((m, n), np.float32), np.empty((m, p), np.float32)
    with_numpy((a, b, c), e, f)
    right = expected((a, b, c))
    assert right.difference(f) is None
    assert right.share(f) <= 1


def faulty(size: Size, fault: str) -> tuple[str | None, float]:
    """What the check says of a result in float32 that has a fault."""
    a, b, c = inputs(size)
    right = expected((a, b, c), exact_sums=True)
    p = a @ b
    if fault == "a term of the first sums is left out":
        p = a[:, 1:] @ b[1:]
    elif fault == "a term of one sum is left out":
        p[3, 4] -= a[3, 5] * b[5, 4] or a[3, 6] * b[6, 4]
    e = np.exp(p)
    if fault == "an exp off by a thousandth":
        e *= np.float32(1.001)
    elif fault == "no exp":
        e = p
    elif fault == "a tile of E is of other columns":
        e[:, 32:64] = e[:, :32]
    elif fault == "a last row is left out":
        e[-1] = 0
    f = e @ c
    if fault == "a column is another's":
        f[:, 7] = f[:, 8]
    elif fault == "one NaN":
        f[2, 3] = np.nan
    return right.difference(f), right.share(f)


FAULTS = (
    "a term of the first sums is left out", "a term of one sum is left out",
    "an exp off by a thousandth", "no exp", "a tile of E is of other columns",
    "a last row is left out", "a column is another's", "one NaN",
)  # fmt: skip


@pytest.mark.parametrize("size", [Size(64, 96, 64, 48), Size(100, 700, 300, 90)], ids=str)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_beyond_what_is_allowed(fault: str, size: Size) -> None:
    assert faulty(size, "none")[0] is None
    sentence, share = faulty(size, fault)
    assert sentence is not None
    assert share > 1
    assert "elements are wrong, the first of them F[" in sentence


def test_the_sentence_says_where() -> None:
    right = expected(inputs(Size(3, 2, 4, 5)), exact_sums=True)
    f = right.f.astype(np.float32)
    f[1, 2] = 7
    found = right.difference(f)
    assert found is not None
    assert found.startswith("1 of 15 elements are wrong, the first of them F[1, 2] = 7, not ")


def test_one_element_by_hand() -> None:
    """A is 1 x 1: exp's error, and one rounding of the product with C."""
    a, b, c = (np.array([[x]], np.float32) for x in (0.5, 3, 2))
    right = expected((a, b, c), exact_sums=True)
    assert right.f[0, 0] == 2 * np.exp(1.5)
    assert right.allowed[0, 0] == pytest.approx(right.f[0, 0] * (EXP + 2.0**-24), rel=1e-6)
    rounded = expected((a, b, c))
    more = 2.0**-24 * 1.5
    assert rounded.allowed[0, 0] == pytest.approx(right.f[0, 0] * (EXP + 2.0**-24 + more), rel=1e-6)
