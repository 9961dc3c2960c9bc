"""What a chip does not take: LLVM's assembler refuses it, too."""

from __future__ import annotations

import pytest

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.text.assembly import parse_instruction
from mfmadsl.model import ARCHITECTURES
from tests.emulator.assembler import accepted

TUPLES = [
    "global_load_dwordx2 v[{0}:{1}], v[2:3], off",
    "global_load_dwordx4 v[8:11], v[{0}:{1}], off",
    "global_store_dwordx3 v[8:9], v[{0}:{2}], off",
    "ds_read_b128 v[{0}:{3}], v9",
    "ds_write2_b64 v9, v[{0}:{1}], v[2:3]",
    "v_lshlrev_b64 v[{0}:{1}], 1, v[2:3]",
    "v_cmp_eq_u64_e32 vcc, v[{0}:{1}], v[2:3]",
    "v_mad_u64_u32 v[8:9], vcc, v0, v1, v[{0}:{1}]",
    "v_mfma_f32_16x16x4f32 a[{0}:{3}], v0, v1, a[{0}:{3}]",
    "v_mov_b32_e32 v{0}, v{1}",
    "s_mov_b64 s[{0}:{1}], 0",
    "s_load_dwordx4 s[{0}:{3}], s[0:1], 0x0",
    "s_load_dwordx2 s[8:9], s[{0}:{1}], 0x0",
    "buffer_load_dword v0, off, s[{0}:{3}], 0",
]
OF_SOME = [
    "v_lshl_add_u64 v[0:1], v[2:3], 0, v[4:5]",
    "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]",
    "v_pk_mul_f32 v[0:1], v[2:3], v[4:5]",
    "v_mov_b64_e32 v[0:1], v[2:3]",
    "v_fmac_f64_e32 v[0:1], v[2:3], v[4:5]",
    "v_mac_f32_e32 v0, v1, v2",
    "v_mad_f32 v0, v1, v2, v3",
    "v_cvt_pk_fp8_f32 v0, v1, v2",
    "v_cvt_pk_bf16_f32 v0, v1, v2",
    "v_permlane32_swap_b32_e32 v0, v1",
    "v_dot2c_f32_f16_e32 v0, v1, v2",
    "v_accvgpr_mov_b32 a0, a1",
    "global_atomic_add_f64 v0, v[2:3], s[4:5]",
    "ds_add_f64 v0, v[2:3]",
    "ds_read_b64_tr_b16 v[0:1], v2",
    "ds_read_b96_tr_b6 v[1:3], v0",
    "s_set_gpr_idx_off",
    "v_add_f32_e32 v0, v1, v2",
]


def refused(line: str, arch: str) -> bool:
    try:
        compile_instruction(parse_instruction(line), Machine(arch))
    except EmulationError:
        return True
    return False


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_it_takes_what_llvm_takes(arch: str) -> None:
    lines = [t.format(*range(first, first + 4)) for t in TUPLES for first in (4, 5, 6, 7)]
    lines += OF_SOME
    taken = accepted(lines, arch)
    assert [line for line, ok in zip(lines, taken, strict=True) if refused(line, arch) == ok] == []
    assert not all(taken)


def test_it_is_told_why() -> None:
    with pytest.raises(EmulationError, match=r"gfx90a does not have it"):
        compile_instruction(parse_instruction("v_mov_b64_e32 v[0:1], v[2:3]"), Machine("gfx90a"))
    odd = "several vector registers begin at an even one, unlike `v\\[1:2\\]`"
    with pytest.raises(EmulationError, match=odd):
        compile_instruction(parse_instruction("ds_read_b64 v[1:2], v0"), Machine("gfx90a"))
    with pytest.raises(EmulationError, match=r"`s\[6:9\]`: 4 scalar registers begin at a multiple"):
        parse_instruction("s_load_dwordx4 s[6:9], s[0:1], 0x0")
