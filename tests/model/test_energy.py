"""Cycles and clocks: what a slower clock may change."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mfmadsl.model import PRODUCTS
from mfmadsl.model.energy import Energy, cycles_at, settled
from mfmadsl.model.power import Power

SHARES = st.floats(0.01, 0.999)
CYCLES = st.floats(1, 1e9)
MI300X_POWER = PRODUCTS["MI300X"].power or Power(0, 0, {}, 0, 0, 0, 0)


def test_cycles_lie_on_lines() -> None:
    assert cycles_at(0.75, {1: 1000, 0.5: 800}) == pytest.approx(900)
    assert cycles_at(0.45, {1: 1000, 0.5: 800}) == pytest.approx(780)
    assert cycles_at(0.75, {1: 1000, 0.5: 800, 0.4: 790}) == pytest.approx(900)
    assert cycles_at(0.45, {1: 1000, 0.5: 800, 0.4: 790}) == pytest.approx(795)
    assert cycles_at(0.5, {1: 1000}) == 1000


@given(SHARES, CYCLES, SHARES, CYCLES)
def test_a_slower_clock_takes_no_less_time_in_no_more_cycles(
    share: float, whole: float, other: float, cycles: float
) -> None:
    assume(whole * other <= cycles <= whole)
    found = cycles_at(share, {1.0: whole, other: cycles})
    assert found <= whole * (1 + 1e-12)
    assert found / share >= whole * (1 - 1e-12)


def test_clocks_are_looked_at_until_they_settle() -> None:
    """Work that waits for memory takes as long at half of the clock, and draws no less for it than
    it would if it took twice as long."""
    power, known = replace(MI300X_POWER, watts=300, idle=200), {1.0: 1000.0}
    energy = Energy(core=2 * 100 * 1e-6, far=0.0)

    def cycles(share: float) -> float:
        return max(300.0, 1000 * share)

    def seconds(share: float) -> float:
        return cycles_at(share, known) / share * 1e-9

    def look_at(share: float) -> None:
        known[share] = cycles(share)

    share = settled(power, energy, look_at, seconds)
    assert len(known) > 2
    assert energy.at(share) / (cycles(share) / share * 1e-9) == pytest.approx(100, rel=0.05)
