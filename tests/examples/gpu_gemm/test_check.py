"""A number that is wrong is told, with its place."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from examples.product import Size, difference, matrices

SIZE = Size(6, 5, 7)


def product() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b, _ = matrices(SIZE)
    return a, b, (a.astype("f8") @ b.astype("f8")).astype("f4")


def test_the_product_itself_is_right() -> None:
    assert difference(*product()) is None


@given(st.integers(0, 5), st.integers(0, 4), st.sampled_from([1.0, -0.5, np.nan, np.inf]))
def test_any_other_number_is_wrong(row: int, column: int, off: float) -> None:
    a, b, c = product()
    c[row, column] += off
    assert str(difference(a, b, c)).startswith(
        f"1 of 30 elements are wrong, the first of them C[{row}, {column}] ="
    )


def test_a_result_that_nobody_wrote_is_wrong() -> None:
    assert str(difference(*matrices(SIZE))).startswith("30 of 30 elements")


def test_no_two_rows_or_columns_are_alike() -> None:
    a, b, _ = matrices(Size(128, 128, 64))
    assert len(np.unique(a, axis=0)) == len(np.unique(b, axis=1).T) == 128
    assert len(np.unique(a, axis=1).T) == len(np.unique(b, axis=0)) == 64


def test_sums_are_exact_in_float32_in_any_order() -> None:
    size = Size(8, 8, 4096)
    a, b, _ = matrices(size)
    assert (np.abs(a) @ np.abs(b)).max() < 2**24
    assert (a == a.astype("float16")).all()
