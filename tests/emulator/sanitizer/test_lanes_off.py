"""Jumps past the instruction that turns lanes on again."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator.sanitizer import sanitize
from tests.emulator.waves import kernel

# Some lanes store 1, then all of them 2 behind it.
KERNEL = """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	v_mov_b32_e32 v2, 1
	v_mov_b32_e32 v3, 2
	s_waitcnt lgkmcnt(0)
	v_cmp_gt_u32_e32 vcc, COUNT, v0
	s_and_saveexec_b64 s[8:9], vcc
	s_cbranch_execz .Lend
	global_store_dword v1, v2, s[4:5]
	INSIDE
.Lend:
	s_or_b64 exec, exec, s[8:9]
.Lbehind:
	BEHIND
	global_store_dword v1, v3, s[4:5] offset:256
	s_endpgm
.Lcold:
	global_store_dword v1, v3, s[4:5] offset:256"""


def found(*changes: tuple[str, str], count: str = "5") -> list[str]:
    text = KERNEL
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    for name in ("INSIDE", "BEHIND"):
        text = text.replace(name, "s_nop 0")
    text = kernel(text.replace("COUNT", count))
    result = sanitize(text, [np.zeros(128, np.uint32)], (1,), (64,), keep_going=True)
    assert {fault.kind for fault in result.faults} <= {"lanes-off"}
    # The fault is told at the jump.
    assert all("branch" in str(fault.instruction) for fault in result.faults)
    return [fault.message for fault in result.faults]


PAST = ("s_cbranch_execz .Lend", "s_cbranch_execz .Lbehind")
OUT = ("INSIDE", "s_branch .Lbehind")


def test_lanes_that_are_on_again_are_not_accused() -> None:
    assert found() == []
    assert found(count="0") == []


def test_a_wave_without_lanes_jumps_past_the_end_of_the_region() -> None:
    assert found(PAST) == []  # no wave takes the jump
    (told,) = found(PAST, count="0")
    assert "this jumped past `s_or_b64 exec, exec, s[8:9]` in line" in told
    assert "has stored without them" in told


def test_a_wave_with_some_lanes_jumps_past_the_end_of_the_region() -> None:
    (told,) = found(OUT)
    assert told.startswith("a wave ends with lanes off: this jumped")
    assert found(OUT, count="64") == []  # all lanes are on


def test_exec_may_be_saved_by_a_copy() -> None:
    copied = "s_mov_b64 s[8:9], exec\n\ts_and_b64 exec, exec, vcc"
    assert len(found(OUT, ("s_and_saveexec_b64 s[8:9], vcc", copied))) == 1


@pytest.mark.parametrize(
    "change",
    [
        ("BEHIND", "s_mov_b64 exec, -1"),  # they are on again by another way
        ("global_store_dword v1, v3, s[4:5] offset:256\n\ts_endpgm", "s_endpgm"),  # no matter
        ("s_and_saveexec_b64 s[8:9], vcc", "s_mov_b64 s[8:9], -1\n\ts_and_b64 exec, exec, vcc"),
    ],
)
def test_what_may_be_meant_so_is_not_accused(change: tuple[str, str]) -> None:
    assert found(OUT, change) == []


def test_a_jump_to_where_the_others_do_not_go_is_not_accused() -> None:
    """As to a call of `trap` behind the kernel's own end."""
    assert found(("INSIDE", "s_branch .Lcold")) == []
