"""The tables of the ISA manuals: two instructions, and how many others must stand between."""

from __future__ import annotations

import pytest

from tests.emulator.sanitizer.wait_states.paths import lacking

TEXT = """\
	.amdgcn_target "amdgcn-amd-amdhsa--{arch}:xnack-"
	.text
kernel:
{code}
	s_endpgm
	.amdhsa_kernel kernel
		.amdhsa_next_free_vgpr 256
	.end_amdhsa_kernel
"""
ALL = "gfx908 gfx90a gfx942 gfx950"
OLD, NEW = "gfx908 gfx90a", "gfx942 gfx950"
SINCE_CDNA2 = "gfx90a gfx942 gfx950"

# CDNA3 ISA, section 4.5; the same of other chips.
VECTOR = [
    (ALL, "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 12",
     "s_getreg_b32 s4, hwreg(HW_REG_MODE)", 2),
    (ALL, "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 12",
     "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 12", 2),
    (ALL, "s_setvskip 0, 0", "s_getreg_b32 s4, hwreg(HW_REG_MODE)", 2),
    (ALL, "v_readlane_b32 s4, v9, 3", "v_readlane_b32 s5, v1, s4", 4),
    (ALL, "v_cmp_eq_u32_e32 vcc, v1, v2", "v_writelane_b32 v3, 5, vcc_lo", 4),
    (ALL, "v_div_scale_f32 v1, vcc, v2, v3, v2", "v_div_fmas_f32 v9, v8, v7, v6", 4),
    (ALL, "v_cmp_eq_u32_e32 vcc, v1, v2", "v_div_fmas_f64 v[12:13], v[8:9], v[6:7], v[4:5]", 4),
    (OLD, "global_store_dwordx3 v[0:1], v[4:6], off", "v_mov_b32_e32 v5, 0", 1),
    (NEW, "global_store_dwordx3 v[0:1], v[4:6], off", "v_mov_b32_e32 v5, 0", 2),
    (NEW, "buffer_store_dwordx4 v[4:7], off, s[0:3], 0", "v_mov_b32_e32 v7, 0", 2),
    (ALL, "buffer_store_dwordx4 v[4:7], off, s[0:3], s9", "v_mov_b32_e32 v7, 0", 0),
    (ALL, "global_store_dwordx2 v[0:1], v[4:5], off", "v_mov_b32_e32 v5, 0", 0),
    (ALL, "v_readfirstlane_b32 s7, v1", "global_load_dword v9, v0, s[6:7]", 5),
    (ALL, "v_cmp_eq_u32_e64 s[4:5], v1, v2", "buffer_load_dword v9, off, s[0:3], s5", 5),
    (ALL, "s_mov_b32 s7, 0", "global_load_dword v9, v0, s[6:7]", 0),
    (ALL, "v_readfirstlane_b32 s7, v1", "s_load_dword s9, s[6:7], 0x0", 0),
    (ALL, "s_mov_b32 m0, 64", "buffer_load_dword off, s[0:3], 0 lds", 1),
    (ALL, "s_mov_b32 m0, 2", "s_movrels_b32 s7, s8", 1),
    (ALL, "s_mov_b32 m0, 2", "s_movreld_b64 s[8:9], s[4:5]", 1),
    (ALL, "v_mov_b32_e32 v1, 0", "v_mov_b32_dpp v2, v1 row_shr:1 row_mask:0xf bank_mask:0xf", 2),
    (ALL, "v_cmpx_eq_u32_e32 vcc, v1, v2",
     "v_mov_b32_dpp v2, v9 row_shr:1 row_mask:0xf bank_mask:0xf", 5),
    (OLD, "v_exp_f32_e32 v1, v2", "v_add_f32_e32 v3, v1, v1", 0),
    (NEW, "v_exp_f32_e32 v1, v2", "v_add_f32_e32 v3, v1, v1", 1),
    (NEW, "v_rcp_f64_e32 v[4:5], v[2:3]", "v_mul_f64 v[8:9], v[6:7], v[4:5]", 1),
    (NEW, "v_exp_f32_e32 v1, v2", "v_log_f32_e32 v3, v1", 0),
    (NEW, "v_add_f16_sdwa v1, v2, v3 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD "
     "src1_sel:DWORD", "v_mov_b32_e32 v4, v1", 1),
    (NEW, "v_cvt_pk_fp8_f32 v1, v2, v3 op_sel:[0,0,1]", "v_mov_b32_e32 v4, v1", 1),
    (NEW, "v_cvt_pk_fp8_f32 v1, v2, v3", "v_mov_b32_e32 v4, v1", 0),
    (NEW, "v_cvt_sr_fp8_f32 v1, v2, v3 op_sel:[0,0,1,0]", "v_mov_b32_e32 v4, v1", 1),
    (NEW, "v_cvt_sr_bf8_f32 v1, v2, v3 op_sel:[0,0,0,1]", "v_mov_b32_e32 v4, v1", 1),
    (NEW, "v_cvt_sr_fp8_f32 v1, v2, v3", "v_mov_b32_e32 v4, v1", 0),
    ("gfx950", "v_cvt_scalef32_sr_bf8_f16 v1, v2, v3, v5 op_sel:[0,0,1,0]",
     "v_mov_b32_e32 v4, v1", 1),
    ("gfx950", "v_cvt_scalef32_f16_fp8 v1, v2, v3 op_sel:[0,0,1]", "v_mov_b32_e32 v4, v1", 1),
    ("gfx950", "v_cvt_scalef32_sr_pk_fp4_f16 v1, v2, v3, v5", "v_mov_b32_e32 v4, v1", 1),
    (OLD, "v_add_f16_sdwa v1, v2, v3 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD "
     "src1_sel:DWORD", "v_mov_b32_e32 v4, v1", 0),
    (OLD, "v_readfirstlane_b32 s7, v1", "v_add_u32_e32 v2, s7, v3", 0),
    (NEW, "v_readfirstlane_b32 s7, v1", "v_add_u32_e32 v2, s7, v3", 2),
    (NEW, "v_add_co_u32_e32 v1, vcc, v2, v3", "v_addc_co_u32_e32 v4, vcc, 0, v5, vcc", 2),
    (NEW, "v_mov_b32_e32 v1, 0", "v_readlane_b32 s4, v1, 3", 1),
    (NEW, "v_cmpx_eq_u32_e32 vcc, v1, v2", "v_readfirstlane_b32 s4, v9", 4),
    ("gfx950", "v_mov_b32_e32 v1, 0", "v_permlane32_swap_b32_e32 v1, v2", 2),
    ("gfx950", "v_cmpx_eq_u32_e32 vcc, v1, v2", "v_permlane16_swap_b32_e32 v3, v4", 4),
]  # fmt: skip

SMALL_908 = "v_mfma_f32_4x4x1f32 a[0:3], v8, v9, a[0:3]"
HALF_908 = "v_mfma_f32_16x16x4f32 a[0:3], v8, v9, a[0:3]"
LARGE_908 = "v_mfma_f32_32x32x2f32 a[0:15], v8, v9, a[0:15]"
SMALL, HALF, LARGE = (
    f"v_mfma_f32_{tile}_f32 v[{8}:{8 + registers - 1}], v1, v2, v[{8}:{8 + registers - 1}]"
    for tile, registers in (("4x4x1_16b", 4), ("16x16x4", 4), ("32x32x2", 16))
)
NARROW = "v_mfma_f32_16x16x16_f16 v[8:11], v[0:1], v[2:3], v[8:11]"
NARROW_LARGE = "v_mfma_f32_32x32x8_f16 v[8:23], v[0:1], v[2:3], v[8:23]"
DOUBLE = "v_mfma_f64_16x16x4_f64 v[8:15], v[0:1], v[2:3], v[8:15]"
DOUBLE_SMALL = "v_mfma_f64_4x4x4_4b_f64 v[8:9], v[0:1], v[2:3], v[8:9]"
USE, STORE, WRITE = (
    "v_mov_b32_e32 v40, v8",
    "global_store_dword v[30:31], v9, off",
    "v_mov_b32_e32 v8, 1",
)

# Chapter 7: CDNA1's, CDNA2's, CDNA3's and CDNA4's tables of required independent instructions.
MATRIX = [
    ("gfx908", "v_mov_b32_e32 v8, 0", SMALL_908, 2),
    ("gfx908", "v_cmpx_eq_u32_e32 vcc, v1, v2", SMALL_908, 4),
    ("gfx908", "v_mov_b32_e32 v8, 0", "v_accvgpr_write_b32 a9, v8", 2),
    ("gfx908", SMALL_908, "v_accvgpr_read_b32 v1, a3", 4),
    ("gfx908", HALF_908, "v_accvgpr_read_b32 v1, a3", 10),
    ("gfx908", LARGE_908, "v_accvgpr_read_b32 v1, a3", 18),
    ("gfx908", LARGE_908, "v_accvgpr_write_b32 a3, v1", 15),
    ("gfx908", SMALL_908, SMALL_908, 0),
    ("gfx908", SMALL_908, "v_mfma_f32_4x4x1f32 a[4:7], v8, v9, a[2:5]", 2),
    ("gfx908", SMALL_908, "v_mfma_f32_4x4x1f32 a[4:7], a1, v9, a[4:7]", 4),
    ("gfx908", "v_accvgpr_write_b32 a1, v1", SMALL_908, 1),
    ("gfx908", "v_accvgpr_write_b32 a9, v1", "v_mfma_f32_4x4x1f32 a[0:3], a9, v9, a[0:3]", 3),
    ("gfx908", "v_accvgpr_write_b32 a9, v1", "v_accvgpr_read_b32 v2, a9", 3),
    ("gfx908", "v_accvgpr_read_b32 v2, a9", "global_store_dword v[4:5], v2, off", 2),
    (SINCE_CDNA2, "v_mov_b32_e32 v1, 0", HALF, 2),
    (SINCE_CDNA2, "v_cmpx_eq_u32_e32 vcc, v5, v6", HALF, 4),
    (SINCE_CDNA2, HALF, HALF, 0),
    ("gfx90a", SMALL, SMALL, 0),
    (NEW, SMALL, SMALL, 2),
    ("gfx90a", SMALL, USE, 5), ("gfx90a", HALF, USE, 11), ("gfx90a", LARGE, USE, 19),
    (NEW, SMALL, USE, 4), (NEW, HALF, USE, 10), (NEW, LARGE, USE, 18),
    ("gfx942", NARROW, USE, 7), ("gfx942", NARROW_LARGE, STORE, 11),
    ("gfx950", NARROW, USE, 8), ("gfx950", NARROW_LARGE, STORE, 12),
    ("gfx942", NARROW, WRITE, 7), ("gfx950", NARROW, WRITE, 8),
    ("gfx90a", HALF, "v_mfma_f32_16x16x4_f32 v[40:43], v8, v2, v[40:43]", 11),
    ("gfx942", NARROW, "v_mfma_f32_16x16x4_f32 v[40:43], v8, v2, v[40:43]", 7),
    ("gfx950", NARROW, "v_mfma_f32_16x16x4_f32 v[40:43], v8, v2, v[40:43]", 8),
    ("gfx90a", HALF, "v_mfma_f32_16x16x4_f32 v[40:43], v1, v2, v[10:13]", 8),
    (NEW, HALF, "v_mfma_f32_16x16x4_f32 v[40:43], v1, v2, v[10:13]", 8),
    ("gfx942", NARROW, "v_mfma_f32_16x16x16_f16 v[40:43], v[0:1], v[2:3], v[10:13]", 5),
    ("gfx950", NARROW, "v_mfma_f32_16x16x16_f16 v[40:43], v[0:1], v[2:3], v[10:13]", 6),
    (SINCE_CDNA2, DOUBLE_SMALL, "v_mov_b32_e32 v40, v8", 6),
    (SINCE_CDNA2, DOUBLE_SMALL, STORE, 9),
    (SINCE_CDNA2, DOUBLE_SMALL, DOUBLE_SMALL, 4),
    ("gfx90a gfx942", DOUBLE, USE, 11), ("gfx950", DOUBLE, USE, 19),
    (SINCE_CDNA2, DOUBLE, STORE, 18), (SINCE_CDNA2, DOUBLE, WRITE, 11),
    (SINCE_CDNA2, DOUBLE, "v_fma_f64 v[30:31], v[32:33], v[34:35], v[36:37]", 2),
    ("gfx90a", "v_mfma_f32_16x16x4_f32 v[40:43], v1, v2, v[8:11]", WRITE, 7),
    (NEW, "v_mfma_f32_16x16x16_f16 v[40:43], v[0:1], v[2:3], v[8:11]", WRITE, 3),
    ("gfx908", "v_mfma_f32_16x16x4f32 a[0:3], v8, v9, a[4:7]", "v_accvgpr_write_b32 a5, v1", 5),
    (SINCE_CDNA2, "v_dot2_f32_f16 v1, v2, v3, v1", "v_mov_b32_e32 v1, v9", 3),
    (SINCE_CDNA2, "v_dot2_f32_f16 v1, v2, v3, v1", "v_mov_b32_e32 v9, v1", 3),
    (SINCE_CDNA2, "v_dot4_i32_i8 v1, v2, v3, v1", "v_dot4_i32_i8 v1, v2, v3, v1", 0),
    (SINCE_CDNA2, "v_dot4_i32_i8 v1, v2, v3, v1", "v_dot4_i32_i8 v1, v1, v3, v4", 3),
]  # fmt: skip

CASES = [
    (arch, first, second, states)
    for archs, first, second, states in VECTOR + MATRIX
    for arch in archs.split()
]


def lines(arch: str, *code: str) -> str:
    return TEXT.format(arch=arch, code="\n".join(f"\t{each}" for each in code))


@pytest.mark.parametrize(("arch", "first", "second", "states"), CASES)
def test_so_many_stand_between(arch: str, first: str, second: str, states: int) -> None:
    between = ["s_mov_b32 s99, 0"] * states
    assert lacking(lines(arch, first, *between, second)) == {}
    if states:
        (message,) = lacking(lines(arch, first, *between[1:], second)).values()
        assert f" {states - 1} wait states after " in message
        assert f" and {states} are needed: put `s_nop 0` before" in message


@pytest.mark.parametrize(
    ("arch", "between"),
    [("gfx908", "v_accvgpr_write_b32 a9, v8"), ("gfx90a", DOUBLE.replace("8:15", "60:67"))],
)
def test_what_is_stored_behind_one_instruction_of_a_kind(arch: str, between: str) -> None:
    """The chip waits for a vector instruction by itself, but not across one of these."""
    write, store = "v_mov_b32_e32 v9, 0", "global_store_dword v[30:31], v9, off"
    assert len(lacking(lines(arch, write, between, store))) == 1
    assert lacking(lines(arch, write, between, "s_nop 0", store)) == {}
    assert lacking(lines(arch, write, "s_nop 0", store)) == {}
    assert lacking(lines(arch, write, store)) == {}


def test_a_nop_counts_as_often_as_it_says() -> None:
    first, second = "v_readfirstlane_b32 s7, v1", "global_load_dword v9, v0, s[6:7]"
    assert lacking(lines("gfx942", first, "s_nop 4", second)) == {}
    (message,) = lacking(lines("gfx942", first, "s_nop 1", second)).values()
    assert message == (
        "a memory instruction reads s7 2 wait states after a vector instruction wrote it, and 5 "
        "are needed: put `s_nop 2` before"
    )


def test_more_than_a_nop_has_takes_several() -> None:
    (message,) = lacking(lines("gfx90a", LARGE, USE)).values()
    assert message.endswith("put `s_nop 7` and `s_nop 7` and `s_nop 2` before")


def test_the_youngest_instruction_on_a_matrix_counts() -> None:
    """The core executes them in order: who waits for the second one has waited for the first."""
    code = [LARGE, *["s_nop 7"] * 2, "s_nop 1", SMALL, "s_nop 4", USE]
    assert lacking(lines("gfx90a", *code)) == {}


def test_a_chip_that_is_not_known_has_no_rules() -> None:
    assert (
        lacking(lines("gfx906", "v_readfirstlane_b32 s7, v1", "global_load_dword v9, v0, s[6:7]"))
        == {}
    )


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (["global_load_dword v2, v[0:1], off", "global_load_dword v1, v[0:1], off"], True),
        (["global_load_dword v1, v[4:5], off", "s_nop 0", "global_load_dword v4, v[6:7], off"],
         False),
        (["global_load_dword v1, v[4:5], off", "global_load_dword v4, v[6:7], off"], True),
        (["global_load_dword v1, v[4:5], off", "global_load_dword v2, v[4:5], off"], False),
        (["global_load_dword v1, v[4:5], off", "global_store_dword v[6:7], v3, off"], True),
        (["s_load_dwordx2 s[4:5], s[0:1], 0x0", "s_load_dwordx2 s[0:1], s[2:3], 0x0"], True),
        (["global_load_dword v1, v[4:5], off", "s_load_dwordx2 s[0:1], s[0:1], 0x0"], False),
    ],
)  # fmt: skip
def test_what_starts_over_keeps_its_addresses(code: list[str], told: bool) -> None:
    retried = lines("gfx90a", *code).replace(":xnack-", ":xnack+")
    messages = list(lacking(retried).values())
    assert [("XNACK" in each) for each in messages] == [True] * told
    for other in (":xnack-", ""):
        assert lacking(retried.replace(":xnack+", other)) == {}
