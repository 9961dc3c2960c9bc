"""Rules beyond grammar: names, types, shapes, chips and their agreement."""

from __future__ import annotations

import pytest

from mfmadsl.language import load_source
from mfmadsl.language.diagnostic import Source
from tests.language.entries import HALF, diagnostics, only, spoiled


def test_a_correct_entry_becomes_the_model() -> None:
    (intrinsic,) = load_source(Source("spec.mfma", HALF))
    assert intrinsic.name == "mfma_f32_16x16x16_f16"
    assert (intrinsic.m, intrinsic.n, intrinsic.k) == (16, 16, 16)
    assert intrinsic.cycles == (("gfx90a", 32), ("gfx942", 16))
    assert intrinsic.call == "llvm.amdgcn.mfma.f32.16x16x16f16"
    assert intrinsic.mnemonics == ("v_mfma_f32_16x16x16_f16", "v_mfma_f32_16x16x16f16")
    assert [o.type.name for o in (intrinsic.a, intrinsic.b, intrinsic.c)] == [
        "float16",
        "float16",
        "float32",
    ]


A, B = "float16[i, k]", "float16[k, j]"


@pytest.mark.parametrize(
    ("old", "new", "code", "message", "hint"),
    [
        ("gfx942=16", "gfx924=16", "chip", "`gfx924` is no chip", "did you mean `gfx942`?"),
        ("gfx942=16", "gfx1100=16", "chip", "'gfx1100' is an RDNA chip, which has WMMA", ""),
        ("  alias", "  modifiers neg\n  alias", "modifier", "negation is of float64 only", ""),
        ("gfx942=16", "gfx90a=16", "chip", "chip `gfx90a` is given twice", ""),
        ("gfx942=16", "gfx942=0", "cycles", "takes a cycle or more", ""),
        (A, "float17[i, k]", "type", "`float17` is no element type", "did you mean `float16`?"),
        (A, "float16 float16[i, k]", "type", "type `float16` is given twice", ""),
        ("float32[i, j]", "float32 float64[i, j]", "type", "only `a` and `b` may", "an entry for"),
        (A, "float16[k, i]", "indices", "`a` is indexed [i, k]", "C[i, j] += A[i, k] * B[k, j]"),
        (B, "float32[k, j]", "type", "`a` has elements of 16 bits, `b` of 32", ""),
        ("m=16 ", "m=0 ", "shape", "m=0 is not between 1 and 128", ""),
        ("m=16 ", "", "shape", "the shape lacks m", "m=16 n=16 k=16"),
        ("m=16 ", "q=16 m=16 ", "shape", "a shape has no `q`", "there are: blocks, k, m, n"),
        ("m=16 ", "m=16 m=16 ", "shape", "shape `m` is given twice", ""),
        ("llvm.amdgcn.mfma.f32.16x16x16f16", "system", "call", "is no LLVM intrinsic", "back end"),
        ("16x16x16f16\"", "32x32x8f16\"", "call", "is for 32x32x8, the entry for 16x16x16", ""),
        ("mfma.f32.16x16x16f16", "nonsense", "call", "has no matrix intrinsic", "write `unknown`"),
        ("16x16x16f16\"", "16x16x16.f16\"", "call", "LLVM 22 has no", "16x16x16f16\"?"),
        ("16x16x16f16\"", "16x16x16f16\" unknown", "call", "knows", "leave out `unknown`"),
        ("16x16x16f16\"", "16x16x16bf16.1k\"", "call",
         "`a` is <4 x half> in each lane, but \"llvm.amdgcn.mfma.f32.16x16x16bf16.1k\" takes", ""),
        ("intrinsic mfma", "intrinsic Mfma", "name", "in lower case", "write `mfma_f32"),
        ("intrinsic mfma_f32_16x16x16_f16", "intrinsic import", "name", "a word of Python", ""),
        ("intrinsic mfma_f32_16x16x16_f16", "intrinsic numpy", "name", "another module", ""),
        ("mfma_f32_16x16x16_f16 {", "mfma_f32_16x16x8_f16 {", "name", "another shape", ""),
        ("mfma_f32_16x16x16_f16 {", "mfma_f32_16x16x16_bf16 {", "name", "`a` is bf16", ""),
        ("mfma_f32_16x16x16_f16 {", "mfma_f32_16x16x16_4b_f16 {", "name", "4 blocks, the entry 1",
         ""),
        ("  alias", "  shape m=16 n=16 k=16\n  alias", "field", "`shape` is given twice", ""),
        ("  cycles  gfx90a=32 gfx942=16\n", "", "field", "has no `cycles`", "add a line"),
    ],
)  # fmt: skip
def test_a_rule_that_is_broken(old: str, new: str, code: str, message: str, hint: str) -> None:
    found = only(spoiled(old, new))
    assert found.code == code
    assert message in found.message
    assert hint in found.hint


SCALED = """\
use layouts

intrinsic mfma_scale_f32_16x16x128_f8f6f4 {
  shape    m=16 n=16 k=128
  a        float8_e4m3fn[i, k]          at  chunks(i, k, chunk=16)
  b        float8_e4m3fn[k, j]          at  chunks(j, k, chunk=16)
  c        float32[i, j]                at  accumulator(i, j)
  scale_a  float8_e8m0fnu[i, k / 32]    at  scale(i, k)
  scale_b  float8_e8m0fnu[k / 32, j]    at  scale(j, k)
  call     "llvm.amdgcn.mfma.scale.f32.16x16x128.f8f6f4"
  cycles   gfx950=32
}
"""


@pytest.mark.parametrize("alone", ["scale_a", "scale_b"])
def test_a_scale_needs_the_other_one(alone: str) -> None:
    assert load_source(Source("spec.mfma", SCALED))
    kept = [
        line for line in SCALED.splitlines() if not line.startswith("  scale_") or alone in line
    ]
    found = only("\n".join(kept))
    assert found.code == "field"
    assert found.message.endswith("scales only one of its operands")
    assert found.hint == "give both `scale_a` and `scale_b`"


@pytest.mark.parametrize("group", [0, 48])
def test_scales_are_of_whole_groups(group: int) -> None:
    found = only(SCALED.replace("[i, k / 32]", f"[i, k / {group}]"))
    assert (found.code, found.message) == ("indices", f"k=128 is no multiple of {group}")


@pytest.mark.parametrize(("k", "pack", "sets"), [(64, 8, 2), (128, 16, 1)])
def test_of_one_set_of_the_index_there_is_nothing_to_choose(k: int, pack: int, sets: int) -> None:
    """A lane's elements of A have two bits each in a register of 32 (CDNA4 ISA, section 7.5.1)."""
    b = "operand(j, k, pack=16)" if sets > 1 else "chunks(j, k, chunk=16)"
    text = f"""\
use layouts

intrinsic smfmac_i32_16x16x{k}_i8 {{
  shape      m=16 n=16 k={k}
  a          int8[i, k / 2]  at  operand(i, k, pack={pack})
  b          int8[k, j]      at  {b}
  c          int32[i, j]     at  accumulator(i, j)
  call       "llvm.amdgcn.smfmac.i32.16x16x{k}.i8"
  cycles     gfx950=16
  modifiers  cbsz_abid
}}
"""
    if sets > 1:
        assert load_source(Source("spec.mfma", text))
    else:
        assert only(text).message == (
            "cbsz and abid choose among sets of the index, and the instruction has one"
        )


def test_an_accumulator_must_hold_the_products() -> None:
    found = diagnostics(spoiled("float32[i, j]", "float16[i, j]"))
    assert "float16 cannot accumulate products of float16" in [d.message for d in found]


def test_floats_do_not_accumulate_into_integers() -> None:
    found = diagnostics(spoiled("float32[i, j]", "int32[i, j]"))
    assert "`a` holds floats, but `c` is int32" in [d.message for d in found]


def test_all_mistakes_of_an_entry_come_in_one_go_in_the_order_of_the_text() -> None:
    text = spoiled("m=16 n=16", "m=16 m=16").replace("gfx942", "gfx1").replace('"llvm', '"lvm')
    found = diagnostics(text)
    assert [d.code for d in found] == ["shape", "shape", "call", "chip"]


@pytest.mark.parametrize(
    ("layout", "code", "message"),
    [
        ("(i, j) { lane = i }", "rule", "layout `l` does not say the `register`"),
        ("(i, J) { lane = i register = i }", "parameter", "`J` has capitals"),
        ("(i, i) { lane = i register = i }", "parameter", "parameter `i` is given twice"),
        ("(i, j) { lane = i register = z }", "unknown-name", "`z` is no parameter of `l`"),
        ("(i, j) { lane = i register = j lane = j }", "rule", "rule `lane` is given twice"),
        ("(i, j) { lane = i register = j bank = j }", "rule", "a layout has no `bank`"),
    ],
)
def test_a_layout_that_is_wrong_by_itself(layout: str, code: str, message: str) -> None:
    found = only(f"layout l{layout}")
    assert (found.code, found.message) == (code, message)
