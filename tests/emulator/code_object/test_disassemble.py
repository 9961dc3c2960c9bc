"""Machine code to text: what each kind of operand is written like, and what is refused."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.emulator.code_object.disassemble import disassemble
from mfmadsl.emulator.code_object.error import CodeObjectError
from mfmadsl.emulator.text.assembly import parse_instruction
from mfmadsl.model import ARCHITECTURES, architecture
from scripts.instruction_table import assemble


def told(words: str, arch: str = "gfx942") -> list[str]:
    """The text of words in hexadecimal, as LLVM's disassembler comments on them."""
    code = b"".join(bytes.fromhex(word)[::-1] for word in words.split())
    return [one.text for one in disassemble(code, architecture(arch))]


WRITTEN = {
    "s_mov_b64 s[4:5], exec": "s_mov_b64 s[4:5], exec",
    "s_mov_b32 s4, 0x12345678": "s_mov_b32 s4, 0x12345678",
    "s_movk_i32 s4, -2": "s_movk_i32 s4, 0xfffe",
    "s_waitcnt vmcnt(40) lgkmcnt(3)": "s_waitcnt vmcnt(40) lgkmcnt(3)",
    "s_waitcnt 0": "s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)",
    "s_waitcnt 0x1000": "s_waitcnt 4096",
    "s_waitcnt 0xcf7f": "s_waitcnt vmcnt(63) expcnt(7) lgkmcnt(15)",
    "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3":
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0x3",
    "s_load_dwordx4 s[8:11], s[0:1], 0x10": "s_load_dwordx4 s[8:11], s[0:1], 0x10",
    "s_load_dword s8, s[0:1], -0x10": "s_load_dword s8, s[0:1], -0x10",
    "s_load_dword s8, s[0:1], s9 offset:0x10": "s_load_dword s8, s[0:1], s9 offset:16",
    "v_mov_b32 v1, -16": "v_mov_b32_e32 v1, -16",
    "v_mov_b32 v1, 0.15915494": "v_mov_b32_e32 v1, 0.15915494",
    "v_mul_f32 v1, 0x40490fdb, v2": "v_mul_f32_e32 v1, 0x40490fdb, v2",
    "v_fmaak_f32 v1, v4, v2, 0x1": "v_fmaak_f32 v1, v4, v2, 0x1",
    "v_fma_f32 v1, -|v2|, v3, 1.0 clamp mul:4": "v_fma_f32 v1, -|v2|, v3, 1.0 clamp mul:4",
    "v_add_f32_e64 v1, neg(1.0), v3": "v_add_f32_e64 v1, neg(1.0), v3",
    "v_addc_co_u32_e64 v1, s[4:5], v2, v3, vcc": "v_addc_co_u32_e64 v1, s[4:5], v2, v3, vcc",
    "v_cmp_class_f32_e64 s[4:5], |v2|, v3": "v_cmp_class_f32_e64 s[4:5], |v2|, v3",
    "v_add_u32_sdwa v1, v2, sext(v3) dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 "
    "src1_sel:DWORD":
        "v_add_u32_sdwa v1, v2, sext(v3) dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE "
        "src0_sel:WORD_1 src1_sel:DWORD",
    "v_mov_b32_dpp v1, v2 row_newbcast:5 row_mask:0xa bank_mask:0xf":
        "v_mov_b32_dpp v1, v2 row_newbcast:5 row_mask:0xa bank_mask:0xf",
    "v_pk_fma_f32 v[2:3], v[4:5], v[6:7], v[8:9] op_sel_hi:[1,0,1] neg_lo:[0,1,0]":
        "v_pk_fma_f32 v[2:3], v[4:5], v[6:7], v[8:9] op_sel_hi:[1,0,1] neg_lo:[0,1,0]",
    "v_mfma_f32_32x32x8_f16 a[0:15], v[2:3], a[4:5], a[0:15] cbsz:1 blgp:2":
        "v_mfma_f32_32x32x8_f16 a[0:15], v[2:3], a[4:5], a[0:15] cbsz:1 blgp:2",
    "v_mfma_f64_16x16x4_f64 v[0:7], v[8:9], v[10:11], 0 neg:[1,0,1]":
        "v_mfma_f64_16x16x4_f64 v[0:7], v[8:9], v[10:11], 0 neg:[1,0,1]",
    "ds_read2st64_b32 a[2:3], v4 offset0:1 offset1:255":
        "ds_read2st64_b32 a[2:3], v4 offset0:1 offset1:255",
    "ds_swizzle_b32 v1, v2 offset:swizzle(SWAP,1)": "ds_swizzle_b32 v1, v2 offset:1055",
    "global_load_dwordx3 v[2:4], v8, s[4:5] offset:-4096 sc0 nt sc1":
        "global_load_dwordx3 v[2:4], v8, s[4:5] offset:-4096 sc0 nt sc1",
    "global_load_lds_dword v[2:3], off offset:4": "global_load_lds_dword v[2:3], off offset:4",
    "scratch_store_dword off, v1, s3 offset:8": "scratch_store_dword off, v1, s3 offset:8",
    "buffer_load_dwordx4 v[4:7], v[8:9], s[8:11], 4 idxen offen offset:4095 sc0":
        "buffer_load_dwordx4 v[4:7], v[8:9], s[8:11], 4 idxen offen offset:4095 sc0",
    "buffer_load_dword v1, s[8:11], s4 offen offset:16 lds":
        "buffer_load_dword v1, s[8:11], s4 offen offset:16 lds",
    "buffer_wbl2 sc0 sc1": "buffer_wbl2 sc0 sc1",
}  # fmt: skip


def test_what_the_assembler_reads_is_written_in_one_way() -> None:
    codes = assemble(list(WRITTEN), "gfx942")
    for (source, text), code in zip(WRITTEN.items(), codes, strict=True):
        assert code is not None, source
        one, *_ = disassemble(code, architecture("gfx942"))  # and what zeros are
        assert one.text == text
        assert parse_instruction(text).name == text.split()[0]


def test_a_scaled_product_has_as_many_registers_as_its_formats() -> None:
    text = "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:17], v[0:3], v20, v21 "
    text += "op_sel:[0,1,0] op_sel_hi:[1,0,0] cbsz:1 blgp:2"
    (code,) = assemble([text], "gfx950")
    assert code is not None
    (one,) = disassemble(code[:16], architecture("gfx950"))
    assert (one.size, one.text.split(" cbsz")[0]) == (16, text.split(" op_sel")[0])
    assert set(one.text.split()) == set(text.split())


def test_branches_have_the_byte_that_they_lead_to() -> None:
    code = bytes.fromhex("000080bf ffff82bf 000084bf")  # s_nop, s_branch back, s_cbranch onward
    code += bytes.fromhex("000081bf")
    found = disassemble(code, architecture("gfx942"))
    assert [(d.offset, d.text, d.target) for d in found] == [
        (0, "s_nop 0", None),
        (4, "s_branch", 4),
        (8, "s_cbranch_scc0", 12),
        (12, "s_endpgm", None),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("bf820001", r"byte 0 of the code, 010082bf: it jumps out of the kernel"),
        ("7fffffff", r"byte 0 of the code, ffffff7f: gfx942 has no such instruction"),
        ("7e0202ff", r"its constant is missing"),
        ("d1010001", r"byte 0 of the code, 010001d1: gfx942 has no such instruction"),
        ("be8401ff 00000003", r"the constant 3 stands in a word of its own"),
        ("be850180", r"there are no 2 scalar registers from 5 on"),
        ("7e0202d1", r"there is no scalar operand 209"),
        ("bf800000 c4000000 00000000", r"byte 4 of the code, 000000c4 00000000"),
        # v_mov_b32_e64 with a second source, which it does not have
        ("d1410001 00000501", r"gfx942 has no such instruction"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_place(words: str, message: str) -> None:
    with pytest.raises(CodeObjectError, match=message):
        told(words)


def test_a_word_that_is_cut_off_is_refused() -> None:
    with pytest.raises(CodeObjectError, match="it has no whole word"):
        disassemble(b"\0\0\x80", architecture("gfx942"))


def test_pairs_of_registers_begin_at_even_ones_where_the_chip_wants_that() -> None:
    odd = "d89a0000 00000501"
    assert told(odd, "gfx908") == ["ds_write_b64 v1, v[5:6]"]
    with pytest.raises(CodeObjectError, match="2 registers do not begin at v5, which is odd"):
        told(odd)


@given(st.binary(min_size=1, max_size=64), st.sampled_from(sorted(ARCHITECTURES)))
def test_any_bytes_are_instructions_or_refused(code: bytes, arch: str) -> None:
    try:
        found = disassemble(code, architecture(arch))
    except CodeObjectError:
        return
    assert sum(one.size for one in found) == len(code)


@given(st.integers(0, 2**64 - 1))
def test_a_scaled_product_has_bits_that_say_nothing(more: int) -> None:
    """Those of its first half that no source of scales has; LLVM takes them all the same."""
    text = "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:17], v[0:3], v20, v21 "
    text += "op_sel:[0,1,0] op_sel_hi:[1,0,0] cbsz:1 blgp:2"
    (code,) = assemble_once(text)
    bits = int.from_bytes(code[:16], "little")
    unused = 0x7FF | 7 << 13 | 0x1FF << 50 | 7 << 61
    spoiled = bits & ~unused | more & unused
    plain, other = (disassemble(b.to_bytes(16, "little"), architecture("gfx950"))
                    for b in (bits, spoiled))  # fmt: skip
    assert plain == other


@cache
def assemble_once(text: str) -> tuple[bytes]:
    (code,) = assemble([text], "gfx950")
    assert code is not None
    return (code,)
