"""What is shown of the word under the mouse."""

from __future__ import annotations

from pathlib import Path

import pytest

from mfmadsl.editor.hover import hover
from mfmadsl.language import check_source, find, library_files, read_source
from mfmadsl.report import intrinsic_summary
from tests.editor.marked import before, marked
from tests.language.entries import HALF


def shown(text: str, piece: str, within: int = 0) -> str:
    """What is shown at a piece of a text; "" if nothing is."""
    found = hover(*marked(before(text, piece, within)))
    return found.text if found else ""


def test_a_name_shows_the_entrys_summary() -> None:
    told = shown(HALF, "mfma_f32_16x16x16_f16 {")
    assert "cycles  gfx90a 32, gfx942 16" in told
    assert "Half inputs." in told
    (intrinsic,) = check_source(marked(f"{HALF}¦")[0].source).entries().intrinsics
    assert intrinsic_summary(intrinsic) in told


def test_the_range_is_the_words() -> None:
    found = hover(*marked(before(HALF, "float16[i, k]", 3)))
    assert found is not None
    assert HALF[found.start : found.end] == "float16"


def test_an_operand_shows_where_its_elements_lie() -> None:
    told = shown(HALF, "a       float16")
    assert "lane = k // 4 * 16 + i, element = k % 4" in told
    # Of A[5, 4] k // 4 is 1: lane 16 + 5, and the first of its elements.
    row = next(line for line in told.splitlines() if line.startswith(" 5 |"))
    assert row.split()[2:7] == ["5:0[0:15]", "5:0[16:31]", "5:1[0:15]", "5:1[16:31]", "21:0[0:15]"]


def test_what_is_too_large_to_be_drawn_says_how_to_have_it_drawn() -> None:
    path = next(p for p in library_files() if p.name == "f16.mfma")
    source = read_source(path)
    entry = source.text.index("intrinsic mfma_f32_32x32x8_f16 {")
    found = hover(check_source(source, path), source.text.index("  c  ", entry) + 2)
    assert found is not None
    assert "mfmadsl show mfma_f32_32x32x8_f16 --spec FILE --operand c draws it" in found.text


def test_a_small_operand_is_drawn() -> None:
    told = shown(HALF, "c       float32")
    assert "lane = i // 4 * 16 + j" in told
    assert "\n 5 | 16:1 17:1 18:1 " in told  # row 5: lanes 16 and up, register 1


def test_a_sparse_operand_has_its_index_with_it() -> None:
    path = next(p for p in library_files() if p.name == "sparse_f16.mfma")
    source = read_source(path)
    at = source.text.index("\n  a ") + 3
    found = hover(check_source(source, path), at)
    assert found is not None
    assert "index   uint2[i, s]" in found.text


@pytest.mark.parametrize("operand", ["scale_a", "scale_b"])
def test_scales_are_operands(operand: str) -> None:
    path = next(p for p in library_files() if p.name == "f8f6f4.mfma")
    source = read_source(path)
    found = hover(check_source(source, path), source.text.index(f"\n  {operand}") + 3)
    assert found is not None
    assert "g counts groups of 32 k" in found.text


def test_a_layout_shows_its_definition_and_its_comment() -> None:
    told = shown(HALF, "accumulator(i, j)")
    assert "layout accumulator(i, j) {\n  lane     = j + J * (i / 4 % (64 / J))" in told
    assert "four consecutive rows of one column" in told
    assert told.endswith("In layouts.mfma of the library")


def test_a_layout_with_mistakes_is_shown_as_it_is() -> None:
    text = "layout l(x, k) { lane = z register = k }"
    assert "lane = z" in shown(text, "l(x")


@pytest.mark.parametrize(
    ("piece", "told"),
    [
        ("float16[i, k]", "16 bits, IEEE binary16"),
        ("shape", "the extents of i (`m`), j (`n`) and k (`k`)"),
        ("m=16", "`m`: the extent of i"),
        ("gfx942=16", "`gfx942`: CDNA3, waves of 64 lanes"),
        ('"llvm.', "LLVM 22 selects it on gfx908, gfx90a, gfx942, gfx950"),
        ("call ", "the LLVM intrinsic that emits the instruction"),
        ("alias", "other names of the instruction"),
        ("intrinsic mfma", "a matrix instruction: C[i, j] += A[i, k] * B[k, j]"),
        ("layouts", "layouts.mfma"),
        ("Half inputs.", ""),
        ("i, k, pack=4", ""),
    ],
)
def test_what_a_word_says(piece: str, told: str) -> None:
    found = shown(HALF, piece)
    assert told in found
    assert bool(found) == bool(told)


def test_an_llvm_intrinsic_of_each_kind_is_known() -> None:
    read = 'read x { call "llvm.amdgcn.ds.read.tr8.b64.v2i32" }'
    assert shown(read, "llvm") == "A lane gets 8 elements of 8 bits. LLVM 22: gfx950."
    kernel = 'microkernel x { call "llvm.x86.tdpbssd" }'
    assert "A `int8`, B `int8`, C `int32`" in shown(kernel, "llvm")
    assert shown('intrinsic x { call "llvm.none" }', "llvm") == ""


def test_an_entry_with_mistakes_says_that_it_has() -> None:
    text = HALF.replace("k=16", "k=32")
    assert "nothing is known until its mistakes are mended" in shown(text, "mfma_f32_16x16x16_f16 ")
    assert "the element type of an operand" in shown(text, "a       float16")


def test_what_is_right_beside_a_mistake_is_known() -> None:
    text = f"{HALF}\nintrinsic broken {{ shape m= }}"
    assert "lane = k // 4 * 16 + j" in shown(text, "b       float16")


def test_an_entry_of_several_types_names_them() -> None:
    path = next(p for p in library_files() if p.name == "f8f6f4.mfma")
    source = read_source(path)
    name = source.text.index("intrinsic ") + len("intrinsic ")
    found = hover(check_source(source, path), name)
    assert found is not None
    assert (
        intrinsic_summary(find("mfma_scale_f32_16x16x128_f8f6f4_fp8_fp8", "gfx950")) in found.text
    )
    assert "likewise " in found.text


def test_a_line_of_an_operand_shows_the_types_of_that_line() -> None:
    path = next(p for p in library_files() if p.name == "f8f6f4.mfma")
    source = read_source(path)
    for at, dtype in ((0, "float8_e4m3fn[i, k] in 8 registers"), (1, "float6_e2m3fn[i, k] in 6 ")):
        line = [i for i in range(len(source.text)) if source.text.startswith("\n  a ", i)][at]
        found = hover(check_source(source, path), line + 3)
        assert found is not None
        assert dtype in found.text


def test_a_comment_cannot_end_the_block_of_code() -> None:
    text = HALF.replace("/// Half inputs.", "/// Half ``` inputs.")
    assert shown(text, "mfma_f32_16x16x16_f16 {").startswith("````text\n")


@pytest.mark.parametrize("path", library_files(), ids=lambda p: p.name)
def test_every_entry_and_operand_of_the_library_shows_something(path: Path) -> None:
    checked = check_source(read_source(path), path)
    for item, described in checked.described:
        found = hover(checked, item.name.span.start)
        assert found is not None
        assert described[0].name in found.text
        for field in item.fields:
            assert hover(checked, field.name.span.start) is not None


@pytest.mark.parametrize("text", ["intrinsic x { shape m=1 ( a", "use ( a", "intrinsic ( a"])
def test_a_word_in_what_is_no_field_yet_is_no_mistake_of_ours(text: str) -> None:
    for place in range(len(text)):
        hover(*marked(f"{text[:place]}¦{text[place:]}"))
