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
        ("  alias", "  shape m=16 n=16 k=16\n  alias", "field", "`shape` is given twice", ""),
        ("  cycles  gfx90a=32 gfx942=16\n", "", "field", "has no `cycles`", "add a line"),
    ],
)  # fmt: skip
def test_a_rule_that_is_broken(old: str, new: str, code: str, message: str, hint: str) -> None:
    found = only(spoiled(old, new))
    assert found.code == code
    assert message in found.message
    assert hint in found.hint


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
