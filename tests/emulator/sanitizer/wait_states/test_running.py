"""Wait states are counted along the way that each wave takes."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.error import Fault
from mfmadsl.emulator.sanitizer import sanitize
from tests.emulator.waves import kernel


def faults(code: str, threads: int = 64) -> list[Fault]:
    arguments = [np.zeros(256, np.uint32)]
    return list(sanitize(kernel(code), arguments, (1,), (threads,), keep_going=True).faults)


def test_the_fault_names_both_instructions() -> None:
    code = "	v_readfirstlane_b32 s4, v0\n	v_add_u32_e32 v1, s4, v0"
    with pytest.raises(EmulationError) as raised:
        sanitize(kernel(code), [np.zeros(1, np.uint32)], (1,), (64,))
    found = raised.value.fault
    assert (found.kind, found.wave, found.instruction) == (
        "wait-states", 0, "v_add_u32_e32 v1, s4, v0",
    )  # fmt: skip
    assert found.earlier is not None
    assert (found.earlier.line, found.earlier.instruction) == (4, "v_readfirstlane_b32 s4, v0")
    assert str(found).startswith(
        "line 5: `v_add_u32_e32 v1, s4, v0`: a vector instruction reads s4 0 wait states after a "
        "vector instruction wrote it, and 2 are needed: put `s_nop 1` before (workgroup (0, 0, 0), "
        "wave 0)"
    )


@pytest.mark.parametrize("first", range(4, 20, 2))
def test_of_several_registers_the_first_is_named(first: int) -> None:
    """In every process: a set of names has another order in each."""
    pair = f"s[{first}:{first + 1}]"
    code = f"	v_cmp_eq_u32_e64 {pair}, v0, v0\n	global_load_dword v1, v0, {pair}"
    text = str(faults(code)[0])
    assert f"reads s{first} 0 wait states" in text


LOOP = """
	s_mov_b32 s5, 0
	s_mov_b32 s4, 1
.Lagain:
	v_add_u32_e32 v1, s4, v0
	s_add_u32 s5, s5, 1
	s_cmp_lt_u32 s5, {turns}
	v_readfirstlane_b32 s4, v0{more}
	s_cbranch_scc1 .Lagain"""


@pytest.mark.parametrize(
    ("turns", "more", "told"),
    [(1, "", False), (2, "", True), (2, "\n	s_nop 0", False)],
)  # fmt: skip
def test_a_jump_is_one_wait_state(turns: int, more: str, told: bool) -> None:
    found = faults(LOOP.format(turns=turns, more=more))
    assert [fault.kind for fault in found] == ["wait-states"] * told


TWO_WAYS = """
	v_readfirstlane_b32 s6, v0
	s_nop 7
	s_cmp_eq_u32 s6, {wave}
	s_cbranch_scc1 .Lother
	v_exp_f32_e32 v1, 1.0
	s_branch .Ljoined
.Lother:
	v_mov_b32_e32 v1, v0
	v_mov_b32_e32 v4, 1.0
	v_exp_f32_e32 v1, 1.0
.Ljoined:
	v_add_f32_e32 v3, v1, v1"""


def test_waves_that_meet_have_come_different_ways() -> None:
    """A branch stands between for those that jump; the others fall into the instruction."""
    (found,) = faults(TWO_WAYS.format(wave=128), 256)
    assert (found.kind, found.wave) == ("wait-states", 2)
    assert faults(TWO_WAYS.format(wave=1), 256) == []


def test_what_is_switched_off_counts_but_does_nothing() -> None:
    code = ["s_mov_b32 s4, 1", "s_setvskip 1, 0", "v_readfirstlane_b32 s4, v0", "s_setvskip 0, 0",
            "v_mov_b32_e32 v1, s4"]  # fmt: skip
    assert faults("\n".join(f"	{line}" for line in code)) == []
