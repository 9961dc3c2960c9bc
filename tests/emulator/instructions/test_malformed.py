"""A line that is no instruction is refused when it is compiled; what is compiled is executed."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.text.assembly import parse_instruction
from mfmadsl.model import ARCHITECTURES
from tests.emulator.waves import wave

ROOT = Path(__file__).parents[3]
LINES = """\
v_add_f32_e64 v8, v2, v4 clamp mul:2
v_add_u16_sdwa v8, v2, v4 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_1 src1_sel:DWORD
v_mov_b32_dpp v8, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
v_mad_i16 v8, v2, v4, v6 op_sel:[0,1,0,1]
v_cvt_pk_fp8_f32 v8, v2, v4 op_sel:[0,0,1]
v_cvt_scalef32_sr_fp8_f16 v8, -v2, v4, v6 op_sel:[0,0,1,1]
v_cvt_scalef32_pk_fp4_f16 v8, v2, v4 op_sel:[0,0,0,1]
v_cvt_scalef32_2xpk16_fp6_f32 v[0:5], v[10:25], v[26:41], v60
v_mqsad_u32_u8 v[0:3], v[4:5], v6, v[8:11]
v_lshlrev_b64 v[8:9], v2, v[4:5]
v_fmaak_f32 v8, v2, v4, 0x40490fdb
v_cmp_gt_f32_sdwa vcc, v2, v4 src0_sel:DWORD src1_sel:WORD_1
v_cndmask_b32_e64 v2, v3, -v4, s[4:5]
v_bitop3_b32 v2, v3, v4, v5 bitop3:0x6c
v_addc_co_u32_e32 v2, vcc, v3, v4, vcc
v_mad_u64_u32 v[2:3], vcc, v4, v5, v[6:7]
v_div_scale_f64 v[2:3], vcc, v[4:5], v[6:7], v[4:5]
v_div_fmas_f32 v2, v3, v4, v5
v_readlane_b32 s4, v2, s3
v_permlane32_swap_b32 v2, v3
v_pk_fma_f32 v[2:3], v[4:5], v[6:7], v[8:9] op_sel:[0,1,0] op_sel_hi:[1,1,0] neg_lo:[1,0,0]
v_pk_mov_b32 v[2:3], v[4:5], v[6:7] op_sel:[0,1]
v_fma_mix_f32 v2, v3, v4, v5 op_sel_hi:[1,0,1] op_sel:[1,0,0]
v_dot4_i32_i8 v2, v3, v4, v5 clamp
v_dot2c_f32_f16_dpp v2, v3, v4 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
v_trig_preop_f64 v[2:3], v[4:5], v6
v_accvgpr_write_b32 a2, v3
v_mfma_f32_16x16x4_4b_f16 a[0:15], v[0:1], v[2:3], a[0:15] cbsz:1 abid:1 blgp:2
v_mfma_f64_16x16x4_f64 a[0:7], v[0:1], v[2:3], a[0:7] neg:[1,0,0]
v_smfmac_f32_16x16x32_f16 a[0:3], v[0:1], v[2:5], v6 abid:1
v_mfma_scale_f32_16x16x128_f8f6f4 a[0:3], v[0:7], v[8:15], a[0:3], v16, v17 op_sel:[0,1] cbsz:1
s_add_u32 s4, s6, s8
s_bfm_b64 s[4:5], s6, 7
s_cmpk_lt_i32 s4, 0x7
s_and_saveexec_b64 s[4:5], s[6:7]
s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1
s_setvskip s4, 3
s_set_gpr_idx_on s4, gpr_idx(SRC0,DST)
s_set_gpr_idx_mode gpr_idx(SRC1)
s_load_dwordx4 s[4:7], s[0:1], 0x10
s_store_dwordx2 s[4:5], s[0:1], s3 offset:-8
s_buffer_store_dword s4, s[20:23], 0x10
s_atomic_cmpswap_x2 s[4:7], s[0:1], 0x10 glc
s_buffer_load_dwordx2 s[4:5], s[20:23], s3 offset:0x8
ds_read2st64_b32 v[2:3], v30 offset1:1
ds_write_b96 v30, v[2:4] offset:4
ds_read_b64_tr_b8 v[2:3], v30
ds_bpermute_b32 v2, v3, v4 offset:4
ds_swizzle_b32 v2, v3 offset:0x8055
ds_cmpst_rtn_b32 v2, v30, v4, v5
ds_pk_add_bf16 v30, v2
global_load_dwordx2 v[2:3], v30, s[0:1] offset:-8 glc
global_store_short_d16_hi v[30:31], v2, off
flat_load_dword v2, v[30:31]
global_load_lds_dword v30, s[0:1] offset:4
scratch_store_dwordx2 off, v[2:3], s3 offset:4
global_atomic_cmpswap_x2 v[2:3], v30, v[4:7], s[0:1] sc0
buffer_load_dwordx3 v[2:4], v[30:31], s[20:23], s3 idxen offen offset:16
buffer_load_dword v30, s[20:23], 0 offen lds
buffer_atomic_add_f32 v2, v30, s[20:23], 0 offen""".splitlines()
OPERANDS = [
    "v0",
    "v[0:1]",
    "v[0:3]",
    "v[2:4]",
    "v[5:2]",
    "s0",
    "s[0:1]",
    "s[0:3]",
    "s[99:102]",
    "vcc",
    "exec",
    "m0",
    "0",
    "024",
    "-1",
    "0x12345678",
    "0x123456789",
    "1.0",
    "1e99",
    "0.7",
    "a0",
    "a[0:3]",
    "off",
    "-v1",
    "|v2|",
    "neg(v3)",
    "sext(v1)",
    "label",
]
MODIFIERS = [
    "clamp",
    "mul:3",
    "div:2",
    "op_sel:[1,1,1]",
    "op_sel:[0,1]",
    "op_sel:[2,0]",
    "op_sel:[]",
    "op_sel_hi:[0]",
    "neg_lo:[1]",
    "neg:[1,1]",
    "offset:-4",
    "offset:8000000000",
    "offset:x",
    "offset:024",
    "offset0:300",
    "offset1:3",
    "sc0",
    "lds",
    "offen",
    "idxen",
    "quad_perm:[0,1,2,x]",
    "quad_perm:[0,1,2]",
    "row_shl:1",
    "row_shl:x",
    "row_mask:q",
    "bank_mask:0x1f",
    "bound_ctrl:2",
    "src0_sel:WORD_7",
    "dst_sel:BYTE_1",
    "dst_unused:X",
    "bitop3:z",
    "bitop3:256",
    "cbsz:9",
    "cbsz:-1",
    "abid:-1",
    "blgp:-1",
    "frob",
    "gpr_idx(DST)",
    "gpr_idx(FOO)",
    "hwreg(HW_REG_MODE)",
    "hwreg(HW_REG_MODE,40,3)",
]


def spoiled(line: str, generator: random.Random) -> str:
    """A line with operands or modifiers changed, dropped or added."""
    name, _, rest = line.partition(" ")
    *operands, last = (piece.strip() for piece in re.split(r",(?![^\[(]*[\])])", rest))
    operands.append(last.split()[0])
    modifiers = last.split()[1:]
    for _ in range(generator.randint(1, 3)):
        place = generator.randrange(len(operands) + 1)
        change = generator.randrange(5)
        if change == 0:
            operands.insert(place, generator.choice(OPERANDS))
        elif change == 1:
            modifiers.append(generator.choice(MODIFIERS))
        elif change == 2 and modifiers:
            modifiers.pop(generator.randrange(len(modifiers)))
        elif place < len(operands):
            operands[place : place + 1] = [] if change == 3 else [generator.choice(OPERANDS)]
    return f"{name} {', '.join(operands)} {' '.join(modifiers)}"


def compile_and_execute(line: str, arch: str) -> None:
    """Raises EmulationError, and nothing else, for what is no instruction or cannot be executed."""
    waves = wave(lds=1024)
    operation = compile_instruction(parse_instruction(line, 3), Machine(arch))
    with np.errstate(all="ignore"):
        operation.execute(waves)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(LINES), st.sampled_from(sorted(ARCHITECTURES)), st.integers(0, 2**32))
def test_spoiled_lines(line: str, arch: str, seed: int) -> None:
    with suppress(EmulationError):
        compile_and_execute(spoiled(line, random.Random(seed)), arch)


def test_lines_that_are_not_spoiled() -> None:
    for line in LINES:
        compile_instruction(parse_instruction(line), Machine("gfx950"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("v_add_u32 v0, v1, v[2:3]", "`v[2:3]` is not a register v or s"),
        ("v_add_u32 v0, v1", "it takes 3 operands, not 2"),
        ("v_add_f32 v0, 1e99, v1", "the constant 1e99 has more than 32 bits"),
        ("v_swap_b32 v0, s1", "`s1` is not a register v"),
        ("global_load_dwordx2 v0, v1, s[2:3]", "`v0` is not 2 registers v or a"),
        ("ds_read_b32 v0, v1 offset:70000", "offset is a number of 16 bits, not 70000"),
        ("s_load_dword s0, off, 0x0", "`off` is not 2 registers s"),
        ("v_mfma_f32_4x4x4_16b_f16 a[0:3], v[0:1], v[2:3], a[0:3] abid:-1",
         "abid is a number of 4 bits, not -1"),
    ],
)  # fmt: skip
def test_a_refusal_says_why(line: str, reason: str) -> None:
    with pytest.raises(EmulationError) as error:
        compile_instruction(parse_instruction(line, 3), Machine("gfx942"))
    assert str(error.value) == f"line 3: `{line}`: unknown instruction: {reason}"


@pytest.mark.parametrize("text", ["v[5:2]", "024", "s[99:102]"])
def test_operands_that_there_are_not(text: str) -> None:
    with pytest.raises(EmulationError, match=f"line 3: `v_mov_b32 v0, {re.escape(text)}`"):
        parse_instruction(f"v_mov_b32 v0, {text}", 3)


def test_without_assertions_too() -> None:
    """`python -O` leaves them out."""
    code = """
import random
from mfmadsl.emulator import EmulationError
from tests.emulator.instructions.test_malformed import LINES, compile_and_execute, spoiled
for seed, line in enumerate(LINES * 5):
    try:
        compile_and_execute(spoiled(line, random.Random(seed)), "gfx950")
    except EmulationError:
        pass
"""
    subprocess.run([sys.executable, "-O", "-c", code], check=True, cwd=ROOT)
