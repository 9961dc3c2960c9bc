"""The work of a ladder in one process or several: answers in order, and a line as each is there."""

from __future__ import annotations

import re

import pytest

from examples.process import answering


def square(number: int) -> int:
    if number > 5:
        raise ValueError(f"{number} is too much")
    return number * number


@pytest.mark.parametrize("jobs", [1, 2])
def test_answers_are_in_order_and_told_one_by_one(
    jobs: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(jobs) as answers:
        assert answers(square, [3, 1, 2], lambda number: f"the square of {number}") == [9, 1, 4]
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert all(re.fullmatch(r" *\d+ s  the square of \d", line) for line in lines)
    assert sorted(line[-1] for line in lines) == ["1", "2", "3"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_goes_wrong_ends_the_work(jobs: int) -> None:
    with answering(jobs) as answers, pytest.raises(ValueError, match="7 is too much"):
        answers(square, [1, 7, 2], str)
