"""Micro-kernels: what they become, and each rule's mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from mfmadsl.error import ArgumentError
from mfmadsl.language import find, find_microkernel, library, microkernels
from mfmadsl.language.llvm_vector import LLVM_VECTORS
from mfmadsl.model import ELEMENT_TYPES, Step
from tests.language.entries import diagnostics, only, spoiled
from tests.language.microkernels import DOT, FMA, SUM, TILES, described, replaced


def test_a_correct_entry_becomes_the_model(tmp_path: Path) -> None:
    found = described(tmp_path, FMA)
    assert (found.name, found.doc) == ("avx512_f32_2x32", "Two rows of two vectors.")
    assert (found.m, found.n, found.k) == (2, 32, 1)
    assert (found.call, found.arguments) == ("llvm.fma.v16f32", ("a", "b", "c"))
    assert (found.features, found.llvm_features) == (("avx512f",), ("avx512f",))
    assert (found.bits, found.group, found.tiles) == (512, 1, False)
    assert found.a.broadcast
    assert not found.b.broadcast
    assert found.c.slot(1, 17) == (3, 1)
    assert found.c.place(3, 1) == (1, 17)
    assert found.operand("b") is found.b


def test_the_steps_are_the_instructions_in_the_order_of_k_and_then_of_sums(tmp_path: Path) -> None:
    assert described(tmp_path, FMA).steps == (
        Step(c=0, a=0, b=0), Step(c=1, a=0, b=1), Step(c=2, a=1, b=0), Step(c=3, a=1, b=1),
    )  # fmt: skip
    assert described(tmp_path, DOT).steps == (
        Step(0, 0, 0), Step(1, 0, 1), Step(2, 1, 0), Step(3, 1, 1),
        Step(0, 2, 2), Step(1, 2, 3), Step(2, 3, 2), Step(3, 3, 3),
    )  # fmt: skip
    assert described(tmp_path, TILES).steps == (
        Step(0, 0, 0), Step(1, 0, 1), Step(0, 1, 2), Step(1, 1, 3),
    )  # fmt: skip


def test_the_registers_that_are_needed_are_those_of_one_step_along_k(tmp_path: Path) -> None:
    assert described(tmp_path, FMA).registers_needed == 4 + 2 + 1
    assert described(tmp_path, DOT).registers_needed == 4 + 2 + 1
    assert described(tmp_path, SUM).registers_needed == 6 + 2 + 1 + 1  # and one for the product
    assert described(tmp_path, TILES).registers_needed == 2 + 2 + 4


@pytest.mark.parametrize(
    "text", ["c + a * b", "c + b * a", "a * b + c", "b * a + c", "(c + (a * b))"]
)
def test_an_expression_is_the_sum_and_the_product_in_any_order(text: str, tmp_path: Path) -> None:
    found = described(tmp_path, replaced(SUM, "c + a * b", text))
    assert (found.call, found.arguments) == ("", ("c", "a", "b"))
    assert (found.bits, len(found.steps)) == (128, 6)


@pytest.mark.parametrize(
    ("text", "computed"),
    [
        ("c - a * b", "computes -a * b + c"),
        ("c + a + b", "computes a + b + c"),
        ("c + 2 * a * b", "computes 2 * a * b + c"),
        ("c + a * b + 0", "computes a * b + c"),  # exact, and yet another operation
        ("c * a + b", "computes a * c + b"),
        ("c - c", "computes 0"),
        ("a * (b + 3)", "computes 3 * a + a * b"),
        ("c + a / b", "divides"),
        ("c + a % b", "divides"),
        ("1", "computes 1"),
    ],
)
def test_of_any_other_expression_it_is_said_what_it_computes(text: str, computed: str) -> None:
    found = only(replaced(SUM, "c + a * b", text))
    assert found.code == "expression"
    assert found.message == f"the expression {computed}, where a step is c + a * b"


@pytest.mark.parametrize(
    ("text", "old", "new", "code", "message"),
    [
        (FMA, "  features  avx512f\n", "", "field", "has no `features`"),
        (FMA, '  call      "llvm.fma.v16f32"\n', "", "field", "neither `call` nor `expression`"),
        (FMA, "  features", "  expression c + a * b\n  features", "field", "both `call` and"),
        (FMA, "  features", "  features avx2\n  features", "field", "`features` is given twice"),
        (FMA, "m=2 n=32 k=1", "m=2 n=32", "shape", "the shape lacks k"),
        (FMA, "k=1\n", "k=1 blocks=2\n", "shape", "it has no blocks"),
        (FMA, "m=2 n=32", "m=2 n=129", "shape", "n=129 is not between 1 and 128"),
        (FMA, "fma.v16f32", "fma.v8f23", "call", "is no LLVM intrinsic that micro-kernels"),
        (FMA, "_2x32 {", "_3x32 {", "name", "the name says another shape than 2x32x1"),
        (FMA, "_2x32 {", "_2x32x2 {", "name", "the name says another shape than 2x32x1"),
        (FMA, "avx512_f32_", "avx512_f64_", "name", "the name says f64, the entry f32"),
        (DOT, "vnni_u8i8_", "vnni_i8_", "name", "the name says i8, the entry u8i8"),
        (FMA, "avx512_f32", "Avx512_f32", "name", "in lower case"),
        (FMA, "float32[i, k]", "float31[i, k]", "type", "`float31` is no element type"),
        (FMA, "float32[i, k]", "float64[i, k]", "type", "`a` is float64, but the instr"),
        (FMA, "float32[i, k]", "float32 float16[i, k]", "type", "has elements of one type"),
        (DOT, "uint8", "int8", "type", "`a` is int8, but the instruction takes uint8"),
        (SUM, "float64[k, j]", "float32[k, j]", "type", "`b` cannot be float32"),
        (FMA, "float32[k, j]", "float32[j, k]", "indices", "`b` is indexed [k, j]"),
        (FMA, "float32[k, j]", "float32[k / 2, j]", "indices", "`b` is indexed [k, j]"),
        (FMA, "  avx512f", "  avx512g", "feature", "`avx512g` is no feature of a CPU"),
        (FMA, "  avx512f", "  avx512f avx512f", "feature", "feature `avx512f` is given twice"),
        (FMA, "  avx512f", "  avx2 fma", "feature", '"llvm.fma.v16f32" needs avx512f'),
        (FMA, "rows(i, k)", "row(i, k)", "unknown-layout", "there is no layout `row`"),
        (FMA, "rows(i, k)", "rows(i)", "argument", "rows(x, k) also needs `k`"),
        (FMA, "sums(i, j, width=16)", "sums(i, j, width=32)", "element", "C[0,16] falls on"),
        (FMA, "sums(i, j, width=16)", "sums(i, j, width=8)", "register", "falls on register 4"),
        (FMA, "sums(i, j, width=16)", "sums(i, j, width=0)", "arithmetic", "divides by zero"),
        (FMA, "m=2 n=32 k=1", "m=2 n=24 k=1", "name", "another shape"),
        (FMA, "sums(i, j, width=16)", "sums(i, j, width=16) broadcast", "broadcast", "none is"),
        (TILES, "width=64)", "width=64) broadcast", "broadcast", "loaded whole"),
        (SUM, "j, width=2, pack", "j, width=4, pack", "element", "has 4 elements, one of `c` 2"),
        (SUM, "sums(i, j, width=2)", "sums(i, j, width=1)", "element", "C would have 64 bits"),
        (SUM, "sums(i, j, width=2)", "sums(i, j, width=4)", "feature", "more than CPUs with"),
    ],
)  # fmt: skip
def test_each_rule_has_its_mistake(text: str, old: str, new: str, code: str, message: str) -> None:
    found = diagnostics(replaced(text, old, new))
    assert any(d.code == code and message in d.message for d in found), found


def test_elements_that_fall_on_one_place_are_named() -> None:
    text = FMA.replace(
        "use vectors", "layout folded(k, x) {\n  register = 0\n  element = x / 2\n}\nuse vectors"
    )
    found = only(text.replace("columns(k, j, width=16, pack=1)", "folded(k, j)"))
    assert found.code == "collision"
    assert found.message == "element 0 of register 0 holds both B[0,0] and B[0,1]"


def test_what_does_not_fill_registers_is_refused() -> None:
    found = diagnostics(FMA.replace("_2x32", "").replace("n=32", "n=24"))[0]
    assert found.code == "registers"
    assert found.message == "24 elements of B do not fill registers of 16 each"


def test_rows_that_do_not_fill_a_tile_register_are_refused() -> None:
    text = TILES.replace("_16x32x128", "").replace("m=16 n=32 k=128", "m=8 n=16 k=64")
    of_a, of_c = diagnostics(text)
    assert of_a.code == of_c.code == "registers"
    assert of_a.message == "`a` fills 8 rows, where a tile register has 16"


def test_more_registers_than_a_cpu_has_are_refused() -> None:
    text = FMA.replace("_2x32", "").replace("m=2", "m=15")
    found = only(text)
    assert found.code == "registers"
    assert found.message == "33 vector registers are needed, 30 of them for the sums"
    assert found.hint == "CPUs with avx512f have 32 of 512 bits"
    narrow = text.replace("m=15", "m=7").replace("width=16", "width=8").replace("v16f32", "v8f32")
    found = only(narrow.replace("features  avx512f", "features  fma").replace("n=32", "n=16"))
    assert found.hint == "CPUs with fma have 16 of 256 bits"
    wide = TILES.replace("16x32x128", "").replace("m=16", "m=64")
    found = only(wide.replace("k=128", "k=64"))
    assert found.hint == "AMX has 8 tile registers"


def test_a_layout_of_the_other_kind_is_a_mistake_that_says_which_is_wanted() -> None:
    text = replaced(FMA, "sums(i, j, width=16)", "accumulator(i, j)")
    found = only(text.replace("use vectors", "use vectors\nuse layouts"))
    assert found.code == "layout-kind"
    assert found.message == "layout `accumulator` is of lanes and their registers"
    assert found.hint == "one with `register = ...` and `element = ...` is wanted"
    found = only(
        spoiled("operand(i, k, pack=4)", "rows(i, k)").replace(
            "use layouts", "use layouts\nuse vectors"
        )
    )
    assert found.code == "layout-kind"
    assert found.message == "layout `rows` is of vector registers and their elements"


def test_a_layout_is_of_lanes_or_of_vector_registers() -> None:
    found = only("layout both(x, k) {\n  lane = x\n  register = k\n  element = k\n}\n")
    assert (found.code, found.message) == ("rule", "a layout is of lanes or of vector registers")
    found = only("layout half(x, k) {\n  element = k\n}\n")
    assert found.message == "layout `half` does not say the `register`"


def test_no_matrix_instruction_reads_unsigned_bytes() -> None:
    found = only(spoiled("float16[i, k]", "uint8[i, k]").replace("_f16 {", "_f61 {"))
    assert found.code == "type"
    assert found.message == "`a` cannot be uint8: no matrix core reads it"
    for intrinsic in library().values():
        assert "uint8" not in [o.type.name for o in intrinsic.operands.values()]


def test_the_librarys_are_found_by_name_and_others_told() -> None:
    assert find_microkernel("avx512_f32_8x32").n == 32
    with pytest.raises(ArgumentError, match="did you mean `avx512_f32_8x32`"):
        find_microkernel("avx512_f32_8x3")
    with pytest.raises(ArgumentError, match="is a micro-kernel of CPUs, and no matrix instruction"):
        find("avx512_f32_8x32")


def test_the_library_has_each_call_and_each_type() -> None:
    calls = {m.call for m in microkernels().values()}
    unused = {"llvm.fma.v4f32", "llvm.fma.v2f64", "llvm.x86.avx512.vpdpbusd.128"}
    assert calls - {""} == set(LLVM_VECTORS) - unused
    for known in LLVM_VECTORS.values():
        assert set(known.types) <= set(ELEMENT_TYPES)
