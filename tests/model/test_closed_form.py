"""A table of integers, recovered as the expression that a person would write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.model import ClosedForm, Digit, closed_form


@pytest.mark.parametrize(
    ("function", "extents", "text"),
    [
        (lambda lane: lane % 16, {"lane": 64}, "lane % 16"),
        (lambda lane, register: lane // 16 * 4 + register, {"lane": 64, "register": 4},
         "lane // 16 * 4 + register"),
        (lambda i: i // 4 % 2 * 32 + i % 4, {"i": 32}, "i // 4 % 2 * 32 + i % 4"),
        (lambda i: 0, {"i": 8}, "0"),
        (lambda i: 7, {"i": 8}, "7"),
        (lambda i: 15 - i, {"i": 16}, "15 - i"),
        (lambda i: i // 3 * 5 + i % 3, {"i": 9}, "i // 3 * 5 + i % 3"),
        (lambda i: i, {"i": 1}, "0"),
    ],
)  # fmt: skip
def test_is_written_as_a_person_would(function, extents, text):  # type: ignore[no-untyped-def]
    assert str(closed_form(function, extents)) == text


def test_variables_that_interact_have_none() -> None:
    assert closed_form(lambda i, j: i * j, {"i": 4, "j": 4}) is None
    assert closed_form(lambda i, j: i ^ j, {"i": 4, "j": 4}) is None


def test_a_shuffle_of_a_prime_extent_has_none() -> None:
    assert closed_form(lambda i: [0, 2, 1][i], {"i": 3}) is None


@given(st.permutations(range(6)), st.integers(0, 6))
def test_every_permutation_of_bits_is_recovered(order: list[int], split: int) -> None:
    """x and y hold the bits of a number in any order: the sum of digits equals the table."""
    extents = {"x": 1 << split, "y": 1 << (6 - split)}

    def function(x: int, y: int) -> int:
        bits = x | y << split
        return sum((bits >> source & 1) << target for target, source in enumerate(order))

    form = closed_form(function, extents)
    assert form is not None
    for x in range(extents["x"]):
        for y in range(extents["y"]):
            expected = function(x, y)
            assert form.value(x=x, y=y) == expected
            assert eval(str(form), {"x": x, "y": y}) == expected


def test_the_text_of_a_negative_first_digit_evaluates() -> None:
    form = ClosedForm(0, (Digit("x", 8, 2, 4, -3), Digit("x", 8, 1, 2, 1)))
    for x in range(8):
        assert eval(str(form), {"x": x}) == form.value(x=x)
