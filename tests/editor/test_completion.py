"""What may be written at a place."""

from __future__ import annotations

from pathlib import Path

import pytest

from mfmadsl.editor.completion import Completion, completions
from mfmadsl.editor.keywords import FIELDS, ITEMS
from mfmadsl.language import Source, check_source
from mfmadsl.language.llvm import LLVM_READS, llvm_intrinsics
from mfmadsl.language.llvm_vector import LLVM_VECTORS
from mfmadsl.model import ARCHITECTURES, MODIFIERS
from tests.editor.marked import marked
from tests.language.entries import HALF

ENTRY = "use layouts\nintrinsic x {\n"


def offered(text: str) -> list[Completion]:
    return completions(*marked(text))


def words(text: str) -> list[str]:
    return [completion.word for completion in offered(text)]


def test_a_file_begins_with_an_item() -> None:
    assert words("¦") == words("use layouts\nin¦") == words(f"{HALF}¦") == list(ITEMS)


def test_the_layouts_in_scope_follow_at() -> None:
    text = "layout own(x, k) { lane = x register = k }\n" + ENTRY + "a int8[i, k] at ¦\n}"
    assert {"own", "operand", "accumulator", "scale"} <= set(words(text))
    assert "operand" not in words(text.replace("use layouts\n", ""))
    assert "sums" not in words(text.replace("use layouts", "use vectors"))  # of vector registers
    kernel = "use vectors\nuse layouts\nmicrokernel x { a int8[i, k] at ¦ }"
    assert set(words(kernel)) == {"rows", "columns", "sums", "tiles", "packed_tiles"}


def test_what_is_written_already_is_replaced() -> None:
    text = HALF.replace("accumulator(i, j)", "acc¦(i, j)")
    (found,) = (c for c in offered(text) if c.word == "accumulator_4x4")
    plain = text.replace("¦", "")
    assert plain[found.start : found.end] == "acc"
    assert f"{plain[: found.start]}accumulator_4x4{plain[found.end :]}" == HALF.replace(
        "accumulator(", "accumulator_4x4("
    )


def test_an_operand_takes_the_types_that_it_can_have() -> None:
    assert {"float16", "int8"} <= set(words(ENTRY + "a ¦"))
    assert not {"uint8", "float8_e8m0fnu"} & set(words(ENTRY + "a ¦"))
    assert words(ENTRY + "scale_a fl¦") == ["float8_e8m0fnu"]
    assert "uint8" in words("microkernel x { a ¦")


def test_fields_are_those_that_the_entry_lacks() -> None:
    assert words("intrinsic x { ¦ }") == list(FIELDS["intrinsic"])
    lacking = ["names", "a", "b", "scale_a", "scale_b", "narrow_cycles", "modifiers"]
    assert words(HALF.replace("}", "¦}")) == lacking


def test_chips_are_those_that_are_not_named() -> None:
    assert words(ENTRY + "cycles ¦") == list(ARCHITECTURES)
    found = offered(ENTRY + "cycles gfx942=16 ¦")
    chips = {c.word: c.written for c in found if c.kind == "chip"}
    assert chips == {chip: f"{chip}=" for chip in ARCHITECTURES if chip != "gfx942"}
    written = [c.written for c in offered("read x { chips ¦ }")]
    assert "gfx950" in written


@pytest.mark.parametrize(
    ("kind", "known"),
    [("intrinsic", llvm_intrinsics()), ("read", LLVM_READS), ("microkernel", LLVM_VECTORS)],
    ids=["intrinsic", "read", "microkernel"],
)
def test_a_call_is_of_an_llvm_intrinsic(kind: str, known: dict[str, object]) -> None:
    head = f"{kind} x {{ call "
    for text in ('"¦"', '"llvm.am¦"', '"¦', '"llvm.¦\n}'):
        assert words(head + text) == sorted(known), text
        plain = (head + text).replace("¦", "")
        found = offered(head + text)[0]
        written = plain[: found.start] + found.written + plain[found.end :]
        assert written.startswith(f'{head}"{found.word}'), text
        assert ('"' in text[1:]) == written.rstrip("\n}").endswith('"'), text
    assert offered(f"{head}¦")[0].written == f'"{sorted(known)[0]}"'


def test_use_names_the_files_beside_and_the_librarys(tmp_path: Path) -> None:
    (tmp_path / "mine.mfma").write_text("")
    (tmp_path / "two words.mfma").write_text("")
    path = tmp_path / "self.mfma"
    path.write_text("use ")
    checked = check_source(Source(str(path), "use "), path)
    assert [c.word for c in completions(checked, 4)] == ["mine", "layouts", "vectors"]


def test_a_layouts_arguments_are_indices_and_parameters() -> None:
    found = {c.word: c.written for c in offered(ENTRY + "a int8[i, k] at operand(¦)")}
    assert found == {"i": "i", "k": "k=", "x": "x=", "pack": "pack="}


def test_a_rule_names_parameters_and_extents() -> None:
    assert words("layout l(x, k) { ¦ }") == ["lane", "register", "element"]
    assert words("layout l(x, k) { lane = ¦ }") == ["x", "k", "block", "X", "K", "BLOCK"]
    assert words("layout l(x, k) { lane = x ¦ }") == ["register", "element"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("shape ¦", ["m", "n", "k", "blocks"]),
        ("shape m=¦", []),
        ("modifiers ¦", list(MODIFIERS)),
        ("a int8[i, k] ¦", ["at"]),
        ("a int8[¦", []),
        ("// a ¦", []),
        ("alias ¦", []),
    ],
)
def test_what_else_there_is(text: str, found: list[str]) -> None:
    assert words(ENTRY + text) == found


def test_words_after_what_is_complete_come_before_other_fields() -> None:
    assert words(ENTRY + 'call "x" ¦')[0] == "unknown"
    assert words("microkernel x { a int8[i, k] at rows(i, k) ¦")[0] == "broadcast"
