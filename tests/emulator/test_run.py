"""Whole programs: arguments, branches, barriers, errors with their line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mfmadsl.emulator import EmulationError, emulate
from tests.emulator.waves import kernel

# Each lane adds 1 to its word of the array, as often as the lane's number modulo 4 says.
DIVERGING = kernel("""
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	s_waitcnt lgkmcnt(0)
	v_lshlrev_b32_e32 v1, 2, v0
	v_and_b32_e32 v2, 3, v0
	v_mov_b32_e32 v3, 0
	s_mov_b64 s[8:9], exec
.LBB0_1:
	v_cmp_lt_u32_e32 vcc, v3, v2
	s_and_b64 exec, exec, vcc
	s_cbranch_execz .LBB0_3
	v_add_u32_e32 v3, 1, v3
	s_branch .LBB0_1
.LBB0_3:
	s_mov_b64 exec, s[8:9]
	global_store_dword v1, v3, s[4:5]""")

# Wave 0 writes LDS, the others read it after a barrier that they reach on another path.
HANDOVER = kernel(
    """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_readfirstlane_b32 s6, v0
	v_and_b32_e32 v1, 63, v0
	v_lshlrev_b32_e32 v1, 2, v1
	v_lshlrev_b32_e32 v3, 2, v0
	s_cmp_lg_u32 s6, 0
	s_cbranch_scc1 .LBB0_2
	v_mul_u32_u24_e32 v2, 3, v0
	ds_write_b32 v1, v2
	s_waitcnt lgkmcnt(0)
.LBB0_2:
	s_barrier
	ds_read_b32 v4, v1
	s_waitcnt lgkmcnt(0)
	global_store_dword v3, v4, s[4:5]""",
    lds=256,
)


def test_lanes_leave_a_loop_one_after_the_other() -> None:
    result = np.zeros(64, np.uint32)
    emulate(DIVERGING, [result], (1,), (64,))
    assert (result == np.arange(64) % 4).all()


def test_waves_take_different_ways_and_meet_at_a_barrier() -> None:
    result = np.zeros(256, np.uint32)
    run = emulate(HANDOVER, [result], (1,), (256,))
    assert (result == np.arange(256) % 64 * 3).all()
    assert run.waves == 4
    assert run.instructions["ds_write_b32"] == 1
    assert run.instructions["ds_read_b32"] == 4


def test_a_last_wave_that_is_not_full_has_its_lanes_switched_off() -> None:
    result = np.full(64, 9, np.uint32)
    emulate(DIVERGING, [result], (1,), (40,))
    assert (result == np.where(np.arange(64) < 40, np.arange(64) % 4, 9)).all()


def test_workgroups_know_their_number() -> None:
    code = kernel("""
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	s_lshl_b32 s3, s2, 8
	v_lshl_add_u32 v1, v0, 2, s3
	v_mov_b32_e32 v2, s2
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v2, s[4:5]""")
    result = np.zeros((600, 64), np.uint32)
    assert emulate(code, [result], (600,), (64,)).waves == 600
    assert (result == np.arange(600)[:, None]).all()


def test_an_unknown_instruction_is_named_with_its_line() -> None:
    with pytest.raises(EmulationError, match=r"line 5: `v_frobnicate_b32 v0, v1`: unknown") as e:
        emulate(kernel("\n\tv_frobnicate_b32 v0, v1"), [np.zeros(1, np.uint32)], (1,), (64,))
    assert e.value.line == 5


def test_an_instruction_with_a_modifier_that_is_not_known_is_unknown() -> None:
    code = kernel("\n\tv_add_u32_e64 v0, v1, v2 frobnicate")
    with pytest.raises(EmulationError, match="unknown instruction"):
        emulate(code, [np.zeros(1, np.uint32)], (1,), (64,))


def test_an_access_outside_of_an_argument_names_instruction_and_argument() -> None:
    with pytest.raises(EmulationError, match=r"line \d+: `global_store_dword.*of `p0`, which has"):
        emulate(DIVERGING, [np.zeros(63, np.uint32)], (1,), (64,))


def test_a_program_without_an_end() -> None:
    text = kernel("").replace("\ts_endpgm\n", "")
    with pytest.raises(EmulationError, match="ran past its last instruction"):
        emulate(text, [np.zeros(1, np.uint32)], (1,), (64,))


def test_a_branch_to_nowhere() -> None:
    with pytest.raises(EmulationError, match=r"s_branch \.L9.*branch to nowhere"):
        emulate(kernel("\n\ts_branch .L9"), [np.zeros(1, np.uint32)], (1,), (64,))


@pytest.mark.parametrize(
    ("arguments", "launch", "message"),
    [
        ([], {}, r"takes 1 arguments \(p0\), but 0 are given"),
        ([3], {}, "argument p0 is a NumPy array, not int"),
        ([np.zeros(64, np.uint32)], {"grid": (0,)}, r"grid is one to three positive numbers"),
        ([np.zeros(64, np.uint32)], {"block": None}, "give grid and block"),
    ],
)
def test_a_call_that_does_not_fit(
    arguments: list[object], launch: dict[str, Any], message: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        emulate(DIVERGING, arguments, **{"grid": (1,), "block": (64,), **launch})


def test_text_that_is_no_kernel() -> None:
    with pytest.raises(EmulationError, match=r"holds no kernel"):
        emulate("s_endpgm", [], (1,), (64,))


def test_read_only_arrays_and_strided_ones() -> None:
    result = np.zeros((64, 2), np.uint32)
    emulate(DIVERGING, [result[:, 1]], (1,), (64,))
    assert (result[:, 1] == np.arange(64) % 4).all()
    assert not result[:, 0].any()


@pytest.mark.parametrize(("saturate", "expected"), [(0, 0x80), (1, 0x7F)])
def test_the_mode_holds_for_what_follows(saturate: int, expected: int) -> None:
    """A number beyond the largest fp8 is NaN, or with FP16_OVFL that."""
    code = kernel(f"""
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), {saturate}
	v_lshlrev_b32_e32 v1, 2, v0
	v_mov_b32_e32 v2, 0x47000000
	v_mov_b32_e32 v3, 0
	v_cvt_pk_fp8_f32 v3, v2, v3
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v3, s[4:5]""")
    result = np.zeros(64, np.uint32)
    emulate(code, [result], (1,), (64,))
    assert (result == expected).all()


@pytest.mark.parametrize(("budget", "enough"), [(4, True), (3, False)])
def test_a_wave_may_execute_as_many_instructions_as_its_budget(budget: int, enough: bool) -> None:
    text = kernel("	s_nop 0\n	s_nop 0\n	s_nop 0", arguments=0)
    if enough:
        assert emulate(text, [], (1,), (64,), budget=budget).total == 4
    else:
        with pytest.raises(EmulationError, match="executed 3 instructions without reaching"):
            emulate(text, [], (1,), (64,), budget=budget)


@pytest.mark.parametrize("branch", ["s_cbranch_scc0", "s_cbranch_scc1"])
def test_waves_that_meet_again_have_executed_what_the_longer_way_took(branch: str) -> None:
    """One of two waves goes through a loop 50 times, four instructions each, the other past it."""
    after = "\n".join(["	s_nop 0"] * 40)
    text = kernel(
        f"""
	v_readfirstlane_b32 s6, v0
	s_mov_b32 s7, 0
	s_cmp_lg_u32 s6, 0
	{branch} .LMEET
.LLOOP:
	s_add_i32 s7, s7, 1
	s_nop 0
	s_cmp_lt_u32 s7, 50
	s_cbranch_scc1 .LLOOP
.LMEET:
{after}""",
        arguments=0,
    )
    longest = 4 + 4 * 50 + 40 + 1
    assert emulate(text, [], (1,), (128,), budget=longest).waves == 2
    with pytest.raises(EmulationError, match=f"executed {longest - 1} instructions without"):
        emulate(text, [], (1,), (128,), budget=longest - 1)
