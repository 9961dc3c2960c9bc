"""Cycles and clocks: what a slower clock may change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.model.energy import cycles_at

SHARES = st.floats(0.01, 0.999)
CYCLES = st.floats(1, 1e9)


def test_cycles_lie_on_a_line() -> None:
    assert cycles_at(0.75, 1000, (0.5, 800)) == pytest.approx(900)
    assert cycles_at(0.25, 1000, (0.5, 800)) == pytest.approx(700)
    assert cycles_at(0.5, 1000, None) == 1000


@given(SHARES, CYCLES, SHARES, CYCLES)
def test_a_slower_clock_takes_no_less_time_in_no_more_cycles(
    share: float, whole: float, other: float, cycles: float
) -> None:
    found = cycles_at(share, whole, (other, cycles))
    assert found <= whole
    assert found / share >= whole * (1 - 1e-12)
