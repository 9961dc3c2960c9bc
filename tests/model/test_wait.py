"""The immediates of `s_waitcnt`, as LLVM writes them and as the ISA manual has their fields."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.error import ArgumentError
from mfmadsl.model import ARCHITECTURES, CDNA


@pytest.mark.parametrize(
    ("counts", "immediate"),
    [
        ({"lgkmcnt": 0}, 0xC07F),
        ({"vmcnt": 0}, 0x0F70),
        ({"vmcnt": 0, "lgkmcnt": 0}, 0x0070),
        ({"vmcnt": 63}, 0xCF7F),
        ({"vmcnt": 16}, 0x4F70),
        ({"expcnt": 0}, 0xCF0F),
        ({}, 0xCF7F),
    ],
)
@pytest.mark.parametrize("arch", list(ARCHITECTURES))
def test_immediates_are_those_of_the_manual(
    arch: str, counts: dict[str, int], immediate: int
) -> None:
    assert ARCHITECTURES[arch].waits(**counts) == immediate


@given(st.integers(0, 63), st.integers(0, 7), st.integers(0, 15))
def test_what_is_written_is_read_again(vmcnt: int, expcnt: int, lgkmcnt: int) -> None:
    counts = {"vmcnt": vmcnt, "expcnt": expcnt, "lgkmcnt": lgkmcnt}
    immediate = CDNA.waits(**counts)
    assert {c.name: c.decoded(immediate) for c in CDNA.wait_counters} == counts


def test_a_counter_has_its_limits_and_its_name() -> None:
    with pytest.raises(ArgumentError, match="vmcnt counts from 0 to 63, not 64"):
        CDNA.waits(vmcnt=64)
    with pytest.raises(ArgumentError, match="there is no counter `dscnt`, but vmcnt, expcnt"):
        CDNA.waits(dscnt=0)
