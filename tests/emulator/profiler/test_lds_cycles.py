"""Bank conflicts: known patterns, and the law that no pattern needs less than its least."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mfmadsl.emulator.profiler import chip_of
from mfmadsl.emulator.profiler.lds_cycles import lds_cycles, phases

LANE = np.arange(64)
ALL = np.ones((1, 64), np.bool_)


def cycles(arch: str, addresses: np.ndarray, size: int, reads: bool = True) -> tuple[int, int]:
    found, least = lds_cycles(chip_of(arch), addresses[None], ALL, size, reads)
    return int(found[0]), int(least[0])


@pytest.mark.parametrize(
    ("arch", "stride", "size", "reads", "expected"),
    [
        ("gfx942", 4, 4, True, (2, 2)),
        ("gfx942", 8, 4, True, (4, 2)),  # every other bank
        ("gfx942", 128, 4, True, (64, 2)),  # one bank
        ("gfx942", 0, 4, True, (2, 2)),  # one word, read once for all
        ("gfx942", 8, 8, True, (4, 4)),
        ("gfx942", 16, 16, True, (8, 8)),
        ("gfx942", 16, 16, False, (8, 8)),
        ("gfx942", 128, 16, True, (64, 8)),
        ("gfx942", 144, 16, True, (8, 8)),  # padded by 16 bytes
        ("gfx950", 4, 4, True, (1, 1)),  # reads see 64 banks
        ("gfx950", 8, 8, True, (2, 2)),
        ("gfx950", 16, 16, True, (4, 4)),
        ("gfx950", 16, 16, False, (8, 8)),
        ("gfx942", 2, 2, True, (2, 2)),  # halves of one word
    ],
)
def test_strides(arch: str, stride: int, size: int, reads: bool, expected: tuple[int, int]) -> None:
    assert cycles(arch, LANE * stride, size, reads) == expected


@pytest.mark.parametrize(("size", "expected"), [(4, (4, 2)), (2, (2, 2)), (8, (8, 4))])
def test_accesses_that_are_not_aligned(size: int, expected: tuple[int, int]) -> None:
    """The last lane of each phase reaches a word of the first lane's bank; halves share words."""
    assert cycles("gfx942", LANE * size + 2, size) == expected
    assert cycles("gfx942", np.full(64, 2), size)[0] == expected[1]


def test_lanes_that_are_aligned_reach_no_word_more_than_they_have() -> None:
    """Those of the second phase are not, and reach a word of the first one's bank."""
    assert cycles("gfx942", LANE * 4 + np.where(LANE < 32, 0, 2), 4) == (3, 2)


def test_wide_reads_go_in_phases_that_were_measured() -> None:
    """MI300X: lanes 0 to 3 with 20 to 23, and so on; MI355X: two such phases at once."""
    first = [0, 1, 2, 3, 20, 21, 22, 23]
    assert phases(32, 16, reads=True)[0].tolist() == first
    both = [0, 1, 2, 3, 20, 21, 22, 23, 12, 13, 14, 15, 24, 25, 26, 27]
    assert phases(64, 16, reads=True)[0].tolist() == both
    assert phases(32, 16, reads=False)[0].tolist() == list(range(8))


@given(st.sampled_from([1, 2, 4, 8, 12, 16]), st.sampled_from([32, 64]), st.booleans())
def test_every_lane_is_in_one_phase(size: int, banks: int, reads: bool) -> None:
    assert sorted(phases(banks, size, reads).reshape(-1).tolist()) == list(range(64))


@given(arrays(np.int64, 64, elements=st.integers(0, 4095)), st.booleans())
def test_no_pattern_needs_less_than_its_least(words: np.ndarray, reads: bool) -> None:
    found, least = cycles("gfx942", words * 16, 16, reads)
    assert least == 8
    assert found >= least


def test_lanes_that_are_off_cost_nothing() -> None:
    active = np.zeros((1, 64), np.bool_)
    active[0, :8] = True
    found, least = lds_cycles(chip_of("gfx942"), LANE[None] * 128, active, 4, True)
    assert (int(found[0]), int(least[0])) == (8, 1)
