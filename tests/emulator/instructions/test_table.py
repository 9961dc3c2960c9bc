"""The table of instructions as a whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.instructions.mode_register import MODE_INSTRUCTIONS
from mfmadsl.emulator.instructions.scalar import SCALAR
from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.instructions.vector import vector_rows
from mfmadsl.emulator.machine.control import NO_EFFECT
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.text.assembly import parse_instruction
from mfmadsl.model import ARCHITECTURES

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    "code",
    [
        "v_frobnicate_b32 v0, v1",
        "v_add_u32 v0",
        "v_add_u32 v0, v1, v2 frobnicate",
        "s_add_u32 s0, s1",
        "global_load_dwordx5 v[0:4], v5, s[0:1]",
        "buffer_load_dword v0, v1",
        "ds_read_b256 v[0:7], v8",
        "v_mfma_f32_16x16x16_f7 v[0:3], v[4:5], v[6:7], v[0:3]",
        "v_mfma_f32_16x16x16_f16 v[0:1], v[4:5], v[6:7], v[0:1]",
        "image_load v[0:3], v4, s[0:7]",
        "s_setreg_b32 hwreg(HW_REG_STATUS), s0",
        "v_add_u32 v0, v1, v[2:3]",
        "v_add_u32 v[0:1], v1, v2",
        "v_add_u32 s0, v1, v2",
        "v_add_u32 v0, a1, v2",
        "v_add_f64 v[0:1], v2, v[4:5]",
        "v_mov_b32 v0, vcc",
        "v_mov_b32 v0, src_shared_base",
        "v_add_u32 v0, 0x123456789, v1",
        "v_add_u32 v0, -v1, v2",
        "v_add_f32 v0, sext(v1), v2",
        "v_readlane_b32 s0, -v1, 3",
        "v_readlane_b32 s0, v1, v2",
        "v_swap_b32 v0, s1",
        "v_cndmask_b32 v0, v1, v2, s0",
        "v_cmp_eq_u32 s0, v1, v2",
        "v_cmp_eq_u32 vcc, v1, v2 clamp",
        "v_add_co_u32 v0, s0, v1, v2",
        "v_addc_co_u32 v0, vcc, v1, v2",
        "v_mad_u64_u32 v[0:1], vcc, v2, v3, v4",
        "v_div_fmas_f32 v0, v1, v2",
        "v_bitop3_b32 v0, v1, v2, v3 bitop3:256",
        "global_load_dword v0, -v1, s[0:1]",
        "ds_read_b32 v0, -v1",
        "s_load_dword s0, off, 0x0",
        "v_mov_b32_dpp v0, v1 row_mask:0xf bank_mask:0xf",
        "v_mov_b32_dpp v0, v1 row_shl:16 row_mask:0xf bank_mask:0xf",
        "v_mov_b32_dpp v0, v1 quad_perm:[0,1,2] row_mask:0xf bank_mask:0xf",
        "v_mov_b32_dpp v0, v1 row_shl:1 row_mirror row_mask:0xf bank_mask:0xf",
        "v_mov_b32_dpp v0, v1 row_shl:1 row_mask:0x1f bank_mask:0xf",
        "v_add_u32_sdwa v0, v1, v2 dst_sel:WORD_2 src0_sel:DWORD src1_sel:DWORD",
    ],
)
def test_what_is_not_known_is_named(code: str) -> None:
    with pytest.raises(EmulationError, match="unknown instruction") as error:
        compile_instruction(parse_instruction(code, 3), Machine("gfx942"))
    if (error.value.fault.instruction, error.value.line) != (code, 3):
        raise AssertionError(code)  # `assert` would say nothing under `python -O`


def test_waits_and_hints_change_nothing() -> None:
    assert {"s_nop", "s_setprio", "s_sleep", "buffer_inv"} <= NO_EFFECT
    known = {*SCALAR, *MODE_INSTRUCTIONS, *vector_rows("gfx950")}
    assert not known & NO_EFFECT


def test_operands_are_checked_without_assertions_too() -> None:
    """`python -O` leaves them out."""
    code = """
from tests.emulator.instructions.test_table import test_what_is_not_known_is_named as test
for mark in test.pytestmark:
    for code in mark.args[1]:
        test(code)
"""
    subprocess.run([sys.executable, "-O", "-c", code], check=True, cwd=ROOT)


def test_a_legacy_product_has_a_short_form_on_one_chip() -> None:
    """On later ones another instruction has its place."""
    for arch in ARCHITECTURES:
        found = vector_rows(arch)["v_mul_legacy_f32"]
        assert found.has_short_form == (arch == "gfx908")
