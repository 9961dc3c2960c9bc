"""No assembly text gets a traceback, however it has been spoiled."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mfmadsl.emulator import EmulationError, emulate
from mfmadsl.emulator.code_object import read_code_object
from mfmadsl.emulator.profiler import profile
from mfmadsl.emulator.sanitizer import sanitize
from tests.emulator.code_object.objects import kernel_object
from tests.emulator.waves import kernel

TEXT = kernel(
    """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	s_mov_b64 s[8:9], exec
	v_lshlrev_b32_e32 v1, 4, v0
	v_mov_b32_dpp v2, v0 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_and_b32_sdwa v3, v2, v0 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_0 src1_sel:DWORD
	v_pk_mul_f32 v[4:5], v[2:3], v[2:3] op_sel_hi:[1,0]
	v_cmp_gt_u32_e32 vcc, 32, v0
	s_and_saveexec_b64 s[6:7], vcc
	s_cbranch_execz .LBB0_2
	v_accvgpr_write_b32 a0, v3
	ds_write2_b32 v1, v2, v3 offset0:1 offset1:2
.LBB0_2:
	s_or_b64 exec, exec, s[6:7]
	s_waitcnt vmcnt(0) lgkmcnt(0)
	s_barrier
	ds_read_b64 v[6:7], v1
	v_mfma_f32_4x4x4_16b_f16 a[0:3], v[4:5], v[4:5], a[0:3]
	s_nop 4
	s_waitcnt lgkmcnt(0)
	global_store_dwordx2 v1, v[6:7], s[4:5]""",
    lds=2048,
).replace("next_free_vgpr 32", "next_free_vgpr 36")
MODES = read_code_object(
    kernel_object("""
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_mov_b32_e32 v1, v0
	s_getpc_b64 s[8:9]
	s_add_u32 s8, s8, 16
	s_addc_u32 s9, s9, 0
	s_swappc_b64 s[30:31], s[8:9]
	s_branch .Lend
	s_waitcnt lgkmcnt(0)
	s_store_dword s2, s[4:5], 0x4
	s_atomic_add s2, s[4:5], 0x8 glc
	s_set_gpr_idx_on s2, gpr_idx(SRC0)
	v_mov_b32_e32 v1, v0
	s_set_gpr_idx_off
	s_setvskip s2, 1
	v_add_u32_e32 v1, v1, v1
	s_setpc_b64 s[30:31]
.Lend:
	s_setvskip 0, 0""")
).assembly("kernel")
WORDS = [
    "v0",
    "v[0:3]",
    "s[0:1]",
    "vcc",
    "exec",
    "m0",
    "0",
    "-1",
    "0x100",
    "a0",
    "off",
    "1.0",
    "v255",
    "neg(v1)",
    "|v2|",
    ",",
    "[",
    "]",
    "{",
    "-",
    "clamp",
    "lds",
    "offset:4096",
    "offset0:300",
    "vmcnt(0)",
    "s_barrier",
    "v_frob",
    "quad_perm:[0,1,2,3]",
    "src0_sel:BYTE_9",
    "op_sel:[1,1,1]",
    "sext(v1)",
    "hwreg(HW_REG_MODE)",
    "gpr_idx(DST)",
    "// 000000001000: BF800000",
    ".amdhsa_kernel",
    "024",
]
RUNS: list[Any] = [
    emulate,
    sanitize,
    lambda *a, **k: sanitize(*a, keep_going=True, **k),
    profile,
]


@settings(max_examples=250, deadline=10_000)
@given(st.integers(0, 2**32), st.integers(1, 3), st.sampled_from(RUNS),
       st.sampled_from([TEXT, MODES]))  # fmt: skip
def test_spoiled_texts(seed: int, count: int, run: Any, text: str) -> None:
    generator = random.Random(seed)
    lines = text.splitlines()
    for _ in range(count):
        line = generator.randrange(len(lines))
        tokens = re.split(r"([ ,\t])", lines[line])
        other = generator.choice(lines).strip()
        tokens[generator.randrange(len(tokens))] = generator.choice([*WORDS, other, ""])
        lines[line] = "".join(tokens)
    try:
        run("\n".join(lines), [np.zeros(512, np.uint32)], (1,), (64,), budget=500)
    except EmulationError:
        pass
    except (ValueError, TypeError) as error:  # the arguments are no longer those of the text
        if not re.search(
            "takes . arguments|argument (p0|x) |no profile of|bytes of LDS, not", str(error)
        ):
            raise
