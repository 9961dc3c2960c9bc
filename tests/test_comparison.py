"""Which element of a result is told, and whether it is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mfmadsl.comparison import compared


def zeros(*shape: int) -> tuple[Any, Any, Any]:
    """A result, what it should be, and tolerances of 1."""
    return np.zeros(shape, np.float32), np.zeros(shape), np.ones(shape)


def test_the_element_furthest_beyond_its_tolerance_is_told() -> None:
    found, expected, tolerances = zeros(2, 3)
    found[0, 1], tolerances[0, 1] = 5, 3
    found[1, 2], tolerances[1, 2] = 4, 0.5
    worst = compared(found, expected, tolerances)
    assert (worst.place, worst.error, worst.tolerance) == ("[1, 2]", 4, 0.5)
    assert not worst.agrees


def test_where_none_is_beyond_it_is_the_one_with_the_largest_error() -> None:
    found, expected, tolerances = zeros(2, 3)
    found[0, 1], tolerances[0, 1] = 5, 10
    found[1, 2], tolerances[1, 2] = 0.5, 0.5  # as far as it may be
    worst = compared(found, expected, tolerances)
    assert (worst.place, worst.error, worst.tolerance) == ("[0, 1]", 5, 10)
    assert worst.agrees


def test_an_error_may_be_as_large_as_its_tolerance() -> None:
    found, expected, tolerances = zeros(1, 1)
    found[:] = 1
    assert compared(found, expected, tolerances).agrees
    found[:] = np.nextafter(np.float32(1), np.float32(2))
    assert not compared(found, expected, tolerances).agrees


def test_an_error_is_that_of_the_result_and_not_of_what_its_type_rounds_to() -> None:
    expected = np.full((1, 1), 1 + 2.0**-12)
    worst = compared(expected.astype(np.float16), expected, np.zeros((1, 1)))
    assert worst.error == 2.0**-12
    assert not worst.agrees


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan, 1e6])
def test_what_is_no_number_of_the_type_is_right_only_where_it_is_expected(special: float) -> None:
    found, expected, tolerances = zeros(2, 2)
    found, expected[1, 0] = found.astype(np.float16), special
    assert compared(found, expected, tolerances).place == "[1, 0]"
    assert not compared(found, expected, tolerances).agrees
    with np.errstate(over="ignore"):
        found[1, 0] = special
    assert compared(found, expected, tolerances).agrees
    found[0, 1] = found[1, 0]
    assert compared(found, expected, tolerances).place == "[0, 1]"


def test_an_element_of_a_batch_is_told_with_its_matrix() -> None:
    found, expected, tolerances = zeros(4, 3, 2)
    found[2, 1, 0] = 9
    worst = compared(found, expected, tolerances)
    assert (worst.batch, worst.row, worst.column, worst.place) == (2, 1, 0, "[2, 1, 0]")
    alone = compared(found[2], expected[2], tolerances[2])
    assert (alone.batch, alone.row, alone.column, alone.place) == (None, 1, 0, "[1, 0]")
