"""Vector instructions that are skipped, or whose registers M0 chooses."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator import EmulationError, emulate
from mfmadsl.emulator.code_object import read_code_object
from mfmadsl.emulator.machine.vector_mode import INDEXES, SKIPS
from mfmadsl.emulator.profiler import profile
from mfmadsl.emulator.sanitizer.sanitize import sanitize
from mfmadsl.emulator.text.operand import M0, MODE
from mfmadsl.model import ARCHITECTURES
from tests.emulator.code_object.objects import kernel_object
from tests.emulator.waves import kernel, put, run, wave

CHIPS = list(ARCHITECTURES)
GROUPS = 5

BEFORE = """
	s_load_dwordx2 s[0:1], s[0:1], 0x0
	v_mov_b32_e32 v4, 40
	v_mov_b32_e32 v5, 50
	v_mov_b32_e32 v6, 60
	v_mov_b32_e32 v7, 7
	v_mov_b32_e32 v8, 8
	v_mov_b32_e32 v9, 9
	v_mov_b32_e32 v10, 10
	s_min_u32 s3, s2, 2
	s_waitcnt lgkmcnt(0)
"""
AFTER = """
	v_lshl_or_b32 v0, s2, 6, v0
	v_lshlrev_b32_e32 v0, 2, v0
	global_store_dword v0, v7, s[0:1]
"""
"""Stores v7 for each thread; s2 is the workgroup, and s3 that up to 2."""


def ran(code: str, arch: str = "gfx942") -> list[int]:
    """What each workgroup has stored, under the eyes of the sanitizer."""
    text = read_code_object(kernel_object(BEFORE + code + AFTER, arch)).assembly("kernel")
    x = np.zeros((GROUPS, 64), np.uint32)
    assert not sanitize(text, [x], (GROUPS,), (64,)).faults
    again = np.zeros_like(x)
    emulate(text, [again], (GROUPS,), (64,))
    assert (x == again).all()
    assert (x == x[:, :1]).all()
    return [int(each) for each in x[:, 0]]


INDEXING = {
    "source": ("s_set_gpr_idx_on s3, gpr_idx(SRC0)\n\tv_mov_b32_e32 v7, v4", [40, 50, 60, 60, 60]),
    "target": (
        "s_set_gpr_idx_on s3, gpr_idx(DST)\n\tv_mov_b32_e32 v5, v4\n\ts_set_gpr_idx_off",
        [7, 7, 40, 40, 40],
    ),
    "second source": (
        "s_set_gpr_idx_on s3, gpr_idx(SRC1)\n\tv_sub_u32_e32 v7, v10, v4",
        [2**32 - 30, 2**32 - 40, 2**32 - 50, 2**32 - 50, 2**32 - 50],
    ),
    "third source": (
        "s_set_gpr_idx_on s3, gpr_idx(SRC2)\n\tv_add3_u32 v7, v4, v8, v8", [56, 57, 58, 58, 58]
    ),
    "constants count": (
        "s_set_gpr_idx_on s3, gpr_idx(SRC1,DST)\n\tv_sub_u32_e32 v5, 0x12345678, v8"
        "\n\ts_set_gpr_idx_off",
        [7, 7, *[0x12345678 - 10] * 3],
    ),
    "another number": (
        "s_set_gpr_idx_on 2, gpr_idx(SRC0)\n\ts_set_gpr_idx_idx s3\n\tv_mov_b32_e32 v7, v4",
        [40, 50, 60, 60, 60],
    ),
    "other operands": (
        "s_set_gpr_idx_on s3, gpr_idx(DST)\n\ts_set_gpr_idx_mode gpr_idx(SRC0)"
        "\n\tv_mov_b32_e32 v7, v4",
        [40, 50, 60, 60, 60],
    ),
    "m0 written": (
        "s_set_gpr_idx_on 0, gpr_idx(SRC0)\n\ts_or_b32 m0, s3, 0x1000\n\tv_mov_b32_e32 v7, v4",
        [40, 50, 60, 60, 60],
    ),
    "pairs": (
        "s_lshl_b32 s3, s3, 1\n\ts_set_gpr_idx_on s3, gpr_idx(SRC1)\n\t"
        "v_lshrrev_b64 v[6:7], 0, v[4:5]",
        [50, 7, 9, 9, 9],
    ),
    "no operand": ("s_set_gpr_idx_on 3, gpr_idx()\n\tv_mov_b32_e32 v7, v4", [40] * 5),
    "off again": (
        "s_set_gpr_idx_on s3, gpr_idx(SRC0)\n\ts_set_gpr_idx_off\n\tv_mov_b32_e32 v7, v4", [40] * 5
    ),
}  # fmt: skip


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("what", INDEXING)
def test_m0_is_added_to_the_registers_of_chosen_operands(what: str, arch: str) -> None:
    code, results = INDEXING[what]
    off = "" if code.endswith("_off") else "\n\ts_set_gpr_idx_off"
    assert ran(f"\t{code}{off}", arch) == results


SKIPPING = """
	s_setvskip s2, {bit}
	v_mov_b32_e32 v7, v4
	v_add_u32_e32 v7, 1, v7
	s_addk_i32 s2, 0
	s_setvskip 0, 0
"""


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("bit", [0, 1, 2, 34])
def test_vector_instructions_are_skipped_by_a_bit(bit: int, arch: str) -> None:
    skipped = [group >> (bit & 31) & 1 for group in range(GROUPS)]
    assert ran(SKIPPING.format(bit=bit), arch) == [7 if each else 41 for each in skipped]


def test_accesses_to_memory_are_skipped_too() -> None:
    code = (
        BEFORE + AFTER.replace("\tglobal", "\ts_setvskip s2, 1\n\tglobal") + "\n\ts_setvskip 0, 0"
    )
    text = read_code_object(kernel_object(code)).assembly("kernel")
    x = np.zeros((GROUPS, 64), np.uint32)
    emulate(text, [x], (GROUPS,), (64,))
    assert x[:, 0].tolist() == [7, 7, 0, 0, 7]


def test_waves_of_a_workgroup_meet_at_a_barrier_in_several_modes() -> None:
    """The first wave is in another mode than the second one."""
    code = (
        BEFORE.replace("s_min_u32 s3, s2, 2", "v_lshrrev_b32_e32 v11, 6, v0")
        + """
	v_readfirstlane_b32 s3, v11
	s_setvskip s3, 0
	v_mov_b32_e32 v7, v4
	s_barrier
	v_add_u32_e32 v7, 1, v7
	s_setvskip 0, 0
	s_barrier
	v_lshlrev_b32_e32 v0, 2, v0
	global_store_dword v0, v7, s[0:1]
"""
    )
    text = read_code_object(kernel_object(code)).assembly("kernel")
    x = np.zeros(128, np.uint32)
    assert not sanitize(text, [x], (1,), (128,)).faults
    assert x.tolist() == [41] * 64 + [7] * 64


def test_what_is_set_of_m0_and_of_the_mode() -> None:
    waves = wave()
    put(waves, {"m0": np.uint32(0xABCD_EF12), "s4": np.uint32(0x1234_5634)})
    run(waves, "s_set_gpr_idx_on s4, gpr_idx(SRC1,DST)")
    assert waves.scalar[M0, 0] == 0xABCD_AF34
    assert waves.scalar[MODE, 0] == 0xF0 | INDEXES
    run(waves, "s_set_gpr_idx_idx 5")
    assert waves.scalar[M0, 0] == 0xABCD_AF05
    run(waves, "s_set_gpr_idx_mode 0x4")
    assert waves.scalar[M0, 0] == 0xABCD_4F05
    run(waves, "s_setvskip s4, 2")
    assert waves.scalar[MODE, 0] == 0xF0 | INDEXES | SKIPS
    run(waves, "s_set_gpr_idx_off")
    assert waves.scalar[MODE, 0] == 0xF0 | SKIPS
    assert waves.scalar[M0, 0] == 0xABCD_4F05


@pytest.mark.parametrize(
    "code",
    [
        "v_mac_f32_e32 v7, v4, v5",
        "v_readlane_b32 s9, v4, 0",
        "v_cmp_eq_u32_e32 vcc, v4, v5",
        "v_mov_b32_dpp v7, v4 row_shl:1 row_mask:0xf bank_mask:0xf",
        "v_cndmask_b32_e32 v7, v4, v5, vcc",
        "v_madmk_f32 v7, v4, 0x40490fdb, v5",
    ],
)
def test_what_m0_does_to_it_is_refused_where_nobody_says_it(code: str) -> None:
    program = f"{BEFORE}\ts_set_gpr_idx_on s3, gpr_idx(SRC0)\n\t{code}\n\ts_set_gpr_idx_off"
    arch = "gfx908" if "_ma" in code else "gfx942"
    text = read_code_object(kernel_object(program, arch)).assembly("kernel")
    with pytest.raises(EmulationError, match=f"{code[:8]}.*nobody says here which"):
        emulate(text, [np.zeros(64, np.uint32)], (1,), (64,))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("s_set_gpr_idx_on s4, gpr_idx(SRC3)", "gpr_idx has SRC0, SRC1, SRC2, DST"),
        ("s_set_gpr_idx_on s4, gpr_idx(DST,DST)", "gpr_idx has SRC0"),
        ("s_set_gpr_idx_on s4, 16", "missing"),
        ("s_set_gpr_idx_on s4", "missing"),
        ("s_set_gpr_idx_mode s4", "missing"),
        ("s_set_gpr_idx_off gpr_idx(SRC0)", "takes 0 operands"),
        ("s_set_gpr_idx_idx v0", "not a register s"),
        ("s_setvskip s4", "takes 2 operands"),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 27, 1), 1", "the mode changes"),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 1", "the mode changes"),
    ],
)
def test_what_is_no_such_instruction_is_refused(code: str, message: str) -> None:
    with pytest.raises(EmulationError, match=f"unknown instruction.*{message}"):
        run(wave(), code)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        # v7 with 6 is v13, which nobody wrote.
        ("s_set_gpr_idx_on 6, gpr_idx(SRC0)\n\tv_add_u32_e32 v7, v7, v4", "reads v13, which nob"),
        ("s_set_gpr_idx_on 200, gpr_idx(SRC0)\n\tv_mov_b32_e32 v7, v4", "uses v204, but the ker"),
        ("s_set_gpr_idx_on s20, gpr_idx(SRC0)\n\tv_mov_b32_e32 v7, v4", "reads s20, which nob"),
        # M0 is defined where it was set, and nowhere else.
        ("s_set_gpr_idx_on 1, gpr_idx(SRC0)\n\ts_set_gpr_idx_off\n\ts_sub_u32 s9, m0, 0",
         "reads s124, which nobody wrote"),
        ("global_load_dword v8, v4, s[0:1]\n\ts_setvskip 0, 0",
         r"s_setvskip.*accesses to memory are still in flight: it needs `s_waitcnt vmcnt\(0\)`"),
    ],
)  # fmt: skip
def test_faults_are_told(code: str, message: str) -> None:
    text = kernel(f"{BEFORE}\t{code}")
    with pytest.raises(EmulationError, match=message):
        sanitize(text, [np.zeros(64, np.uint32)], (1,), (64,))


def test_what_m0_chooses_is_profiled_and_what_skipping_costs_is_not_known() -> None:
    code = INDEXING["source"][0] + "\n\ts_set_gpr_idx_off"
    arguments = [np.zeros((2, 64), np.uint32)], (2,), (64,)
    text = read_code_object(kernel_object(BEFORE + code + AFTER)).assembly("kernel")
    assert profile(text, *arguments).whole.instructions["valu"] == 10
    skipping = read_code_object(kernel_object(BEFORE + SKIPPING.format(bit=0) + AFTER))
    with pytest.raises(EmulationError, match=r"s_setvskip.*no source says what .* costs"):
        profile(skipping.assembly("kernel"), *arguments)
