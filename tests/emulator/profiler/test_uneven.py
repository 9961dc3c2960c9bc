"""Workgroups of which some do more than others, on a chip's compute units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.emulator.profiler.uneven import growth, is_uneven, mean_groups, uneven
from mfmadsl.model import product_of

CHIP = product_of("gfx942", "MI300X")
PLACES = CHIP.dies * CHIP.units_of_die


def test_alike_ones_take_whole_rounds() -> None:
    found = uneven(CHIP, 2, 2.0, np.ones(2 * PLACES * 3))
    assert found.rounds == pytest.approx(3)
    assert found.busy == pytest.approx(1)


def test_the_longest_last_makes_the_rest_wait() -> None:
    each = np.array([1.0] * PLACES + [9.0])
    assert uneven(CHIP, 1, 1.0, each).rounds == 10
    assert uneven(CHIP, 1, 1.0, each[::-1]).rounds == 9


def test_a_die_that_gets_all_long_ones_ends_last() -> None:
    """Workgroups go to the dies in turn, whatever these have to do."""
    each = np.ones(4 * PLACES)
    each[:: CHIP.dies] = 3
    assert uneven(CHIP, 1, 1.0, each).rounds == pytest.approx(12)


def test_who_is_alone_on_a_unit_is_faster() -> None:
    """Of two on a unit the short one ends after 1; then the long one does what is left alone."""
    each = np.array([3.0] * PLACES + [1.0] * PLACES)
    assert uneven(CHIP, 2, 2.0, each).rounds == pytest.approx(1 + 2 / 2)
    assert uneven(CHIP, 2, 1.0, each).rounds == pytest.approx(3)


@given(
    st.lists(st.floats(0.01, 9), min_size=1, max_size=900),
    st.integers(1, 4), st.floats(1, 4),
)  # fmt: skip
def test_no_less_than_the_longest_and_than_an_even_share(
    each: list[float], resident: int, alone: float
) -> None:
    found = uneven(CHIP, resident, alone, np.array(each))
    fastest = alone if resident > 1 else 1
    assert found.rounds >= max(each) / fastest - 1e-9
    assert found.rounds >= sum(each) / (PLACES * resident) / fastest - 1e-9
    assert found.rounds <= sum(each) + 1e-9
    assert 0 < found.busy <= 1 + 1e-9


def test_who_does_nothing_takes_no_time_but_its_turn() -> None:
    """All that work are on one die."""
    each = np.zeros(4 * PLACES)
    each[:: CHIP.dies] = 1
    assert uneven(CHIP, 1, 1.0, each).rounds == pytest.approx(4)
    assert is_uneven(CHIP, each.astype(np.int64))
    assert not is_uneven(CHIP, np.array([3] * 20 + [0] * 99))
    assert is_uneven(CHIP, np.array([3] * 20 + [4]))


def test_the_mean_is_of_those_that_work() -> None:
    counts = np.array([0, 100, 0, 10, 20, 60, 30])
    working = np.flatnonzero(counts)
    assert list(mean_groups(counts, working, 2)) == [5, 6]  # 44 on the average


def test_time_grows_as_that_of_the_longest_does() -> None:
    assert growth((100, 300), (10, 30)) == 1
    assert growth((100, 200), (10, 30)) == 0.5
    assert growth((100, 90), (10, 30)) == 0
    assert growth((100, 100), (10, 10)) == 1
