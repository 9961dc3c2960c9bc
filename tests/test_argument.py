"""What public functions take, and how they tell what they do not."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from mfmadsl.argument import check_extent, check_integer, check_list, check_path, described
from mfmadsl.error import ArgumentError, ArgumentTypeError


@pytest.mark.parametrize("value", [1, 2**31 - 1, np.int64(7), np.uint8(255)])
def test_an_extent_is_what_32_bits_count(value: Any) -> None:
    found = check_extent("n", value)
    assert (type(found), found) == (int, int(value))


@pytest.mark.parametrize("value", [0, -1, 2**31, 10**100])
def test_other_numbers_are_no_extents(value: int) -> None:
    with pytest.raises(ArgumentError, match=r"^n: is a number from 1 to 2\^31 - 1, not "):
        check_extent("n", value)


@pytest.mark.parametrize("value", [True, False, np.True_, 1.0, "1", None, np.float32(2)])
def test_what_only_looks_like_an_integer_is_none(value: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=r"^n: is an integer, not "):
        check_integer("n", value)


@pytest.mark.parametrize("value", ["ab", b"ab", bytearray(b"ab"), {1, 2}, iter([1]), 3])
def test_texts_and_bytes_are_no_lists(value: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=r"^x: is a list, not "):
        check_list("x", value, "a list")
    check_list("x", [], "a list")
    check_list("x", (1, 2), "a list")
    check_list("x", range(3), "a list")


@pytest.mark.parametrize("value", ["", "a\0b", "a\ud800", b"a\0b"])
def test_a_path_has_characters_that_a_path_can_have(value: Any) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match=r"^file: "):
        check_path("file", value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (10**60 - 1, "9" * 60),
        (10**60, "an integer of 200 bits"),
        (-(10**60), "an integer of 200 bits"),
        ("x" * 60, repr("x" * 60)),
        ("x" * 61, repr("x" * 60 + "...")),
        (True, "True"),
        (None, "None"),
        (1.5, "1.5"),
        ([1], "list"),
        (np.zeros(1), "numpy.ndarray"),
    ],
)
def test_values_are_told_in_few_words(value: Any, text: str) -> None:
    assert re.fullmatch(re.escape(text), described(value))
