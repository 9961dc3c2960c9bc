"""What each line of a kernel costs, counted once more from the model's events."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator.profiler import Profile, profile
from mfmadsl.report.kernel_page.listing import Line, listing
from tests.emulator.waves import kernel

LOOP = kernel(
    """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 7, v0
	s_mov_b32 s6, 6
	s_waitcnt lgkmcnt(0)
.L1:
	ds_write_b32 v1, v0
	s_waitcnt lgkmcnt(0)
	ds_read_b32 v2, v1
	s_waitcnt lgkmcnt(0)
	s_sub_u32 s6, s6, 1
	s_cmp_lg_u32 s6, 0
	s_cbranch_scc1 .L1
	v_lshlrev_b32_e32 v3, 2, v0
	global_store_dword v3, v2, s[4:5]""",
    lds=64 * 128,
)


@pytest.fixture(scope="module")
def found() -> Profile:
    return profile(LOOP, [np.zeros(64, np.uint32)], (1,), (64,))


@pytest.fixture(scope="module")
def lines(found: Profile) -> list[Line]:
    return listing(found, LOOP)


def test_the_lines_are_those_of_the_kernel(lines: list[Line]) -> None:
    text = LOOP.splitlines()
    assert [line.text for line in lines] == [text[line.number - 1] for line in lines]
    assert lines[-1].text.strip() == "s_endpgm"
    assert sum(line.place is not None for line in lines) == 14


def test_the_loop_is_marked_and_turned_six_times(lines: list[Line]) -> None:
    inside = [line for line in lines if line.in_loop and line.place is not None]
    assert [line.text.split()[0] for line in inside] == [
        "ds_write_b32", "s_waitcnt", "ds_read_b32", "s_waitcnt", "s_sub_u32", "s_cmp_lg_u32",
        "s_cbranch_scc1",
    ]  # fmt: skip
    assert {line.times for line in inside} == {6}
    outside = [line for line in lines if not line.in_loop and line.place is not None]
    assert {line.times for line in outside} == {1}


def test_what_all_lines_wait_is_the_time_of_the_wave(found: Profile, lines: list[Line]) -> None:
    issued = [event.issued for event in found.timing.events]
    assert sum(line.cycles for line in lines) == pytest.approx(max(issued) - min(issued))


def test_a_stride_of_32_banks_conflicts(found: Profile, lines: list[Line]) -> None:
    """All 64 lanes want one bank: a cycle for each, where two would do."""
    reads = [line for line in lines if line.text.split()[:1] == ["ds_read_b32"]]
    assert [line.conflicts for line in reads] == [62]
    assert [line.busy for line in reads] == [64]


def test_a_wait_costs_what_it_waits_for(lines: list[Line]) -> None:
    """64 cycles of the LDS and its latency, before the wait behind the read is over."""
    place = next(i for i, line in enumerate(lines) if line.text.strip().startswith("ds_read"))
    assert lines[place + 1].waits > 64
    assert lines[place + 1].unit == "wait"


def test_a_barrier_is_executed_by_each_of_two_waves() -> None:
    text = LOOP.replace("	v_lshlrev_b32_e32 v3", "	s_barrier\n	v_lshlrev_b32_e32 v3")
    text = text.replace("v_lshlrev_b32_e32 v1, 7", "v_lshlrev_b32_e32 v1, 6")
    found = profile(text, [np.zeros(128, np.uint32)], (1,), (128,))
    lines = listing(found, text)
    assert [line.times for line in lines if line.text.strip() == "s_barrier"] == [1]
    assert {line.times for line in lines if line.place is not None and line.in_loop} == {6}
    assert sum(line.times for line in lines) == found.whole.total
    spans = 0
    for wave in (0, 1):
        issued = [event.issued for event in found.timing.events if event.wave == wave]
        spans += max(issued) - min(issued)
    assert sum(line.cycles for line in lines) == pytest.approx(spans / 2)


def test_it_begins_at_the_label_whatever_stands_behind_it() -> None:
    name = next(line for line in LOOP.splitlines() if line.startswith("kernel:"))
    text = LOOP.replace(name, f"{name} ; @kernel\n; a comment\n	.loc 1 2 3", 1)
    found = profile(text, [np.zeros(64, np.uint32)], (1,), (64,))
    assert listing(found, text)[0].text.startswith("kernel:")
