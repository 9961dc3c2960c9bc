"""What is expected at a place, in items that are well-formed and in those that are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from mfmadsl.editor.scan import Expected, expected_at, items, word_at
from mfmadsl.language import Source, library_files
from mfmadsl.language.parser import parse
from mfmadsl.language.syntax import LayoutItem, OperandField, Use
from tests.editor.marked import MARK
from tests.language.entries import HALF


def expected(text: str) -> Expected:
    _, found = expected_at(text.replace(MARK, ""), text.index(MARK))
    return found


@pytest.mark.parametrize("path", library_files(), ids=lambda p: p.name)
def test_items_and_fields_are_those_of_the_parser(path: Path) -> None:
    text = path.read_text()
    parsed, mistakes = parse(Source("x", text))
    assert mistakes == []
    found = items(text)
    assert [item.name.start for item in found if item.name] == [i.name.span.start for i in parsed]
    for item, known in zip(found, parsed, strict=True):
        if isinstance(known, Use):
            continue
        parts = known.rules if isinstance(known, LayoutItem) else known.fields
        assert [f.keyword.start for f in item.fields] == [p.name.span.start for p in parts]


@pytest.mark.parametrize("path", library_files(), ids=lambda p: p.name)
def test_words_of_operands_are_expected_where_they_stand(path: Path) -> None:
    text = path.read_text()
    for item in parse(Source("x", text))[0]:
        for field in getattr(item, "fields", ()):
            if not isinstance(field, OperandField):
                continue
            for dtype in field.types:
                assert expected_at(text, dtype.span.start)[1].role == "type"
            for index in field.indices:
                assert expected_at(text, index.span.start)[1].role == "index"
            placement = field.placement
            assert expected_at(text, placement.layout.span.start)[1].role == "layout"
            for argument in placement.arguments:
                named = argument.keyword or argument.value
                assert expected_at(text, named.span.start)[1].role == "argument"


ENTRY = "intrinsic x {\n"


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("¦", "item"),
        ("use ¦", "use"),
        ("use ¦\nintrinsic x {", "use"),
        ("use layouts ¦", "item"),
        ("layout ¦", "name"),
        ("layout l(¦", "parameter"),
        ("layout l(x) { ¦", "rule"),
        ("layout l(x) { lane = ¦", "expression"),
        ("layout l(x) { lane = x ¦", "rule"),
        ("layout l(x) { lane = x + ¦", "expression"),
        ("intrinsic x ¦", "nothing"),
        (ENTRY + "¦", "field"),
        (ENTRY + "a ¦", "type"),
        (ENTRY + "a int8 ¦", "type"),
        (ENTRY + "a int8[¦", "index"),
        (ENTRY + "a int8[i, k] ¦", "at"),
        (ENTRY + "a int8[i, k] at ¦", "layout"),
        (ENTRY + "a int8[i, k] at ¦\n  b int8", "layout"),
        (ENTRY + "a int8[i, k] at l(¦", "argument"),
        (ENTRY + "a int8[i, k] at l(i, ¦", "argument"),
        (ENTRY + "a int8[i, k] at l(i, k=¦", "expression"),
        (ENTRY + "shape m=¦", "nothing"),
        (ENTRY + "shape m=16 ¦", "setting"),
        (ENTRY + "call ¦", "string"),
        (ENTRY + 'call "llvm.x" ¦', "word"),
        (ENTRY + "a int8[i, k] at l(i, k) } ¦", "item"),
        ("read r { from_lane lane + ¦", "expression"),
        ("read r { from_lane lane ¦", "field"),
        ('accelerator x { a int8[i, k] in ¦', "string"),
        ("// a comment: use\nfragment ¦", "name"),
        ('intrinsic x { call "use ¦', "word"),
    ],
)  # fmt: skip
def test_what_is_expected(text: str, role: str) -> None:
    assert expected(text).role == role


def test_an_operand_may_follow_what_is_complete_and_nothing_else() -> None:
    for text, begins in (
        ("shape ¦", False), ("shape m=16 ¦", True), ("shape m=¦", False), ("alias v_x ¦", True),
        ("a int8[i, k] at l(i, ¦", False), ("a int8[i, k] at l(i, k) ¦", True),
    ):  # fmt: skip
        assert expected(ENTRY + text).begins == begins, text


def test_a_letter_in_an_expression_begins_no_field() -> None:
    (item,) = items("microkernel x { expression c + a * b features avx }")
    assert [field.keyword.text for field in item.fields] == ["expression", "features"]


def test_a_letter_behind_in_begins_no_field() -> None:
    (item,) = items('accelerator x { a int8[i, k] in b c int32[i, j] in "sums" }')
    assert [field.keyword.text for field in item.fields] == ["a", "c"]


def test_the_word_at_a_place_has_its_end_but_no_comment_has() -> None:
    for within, found in ((0, "use"), (3, "use"), (4, "layouts"), (11, "layouts")):
        word = word_at("use layouts // note", within)
        assert word is not None
        assert word.text == found
    assert word_at("use layouts // note", 16) is None
    assert word_at("a  b", 2) is None
    beside = word_at("use// note", 3)
    assert beside is not None
    assert beside.text == "use"


def test_a_string_that_is_not_closed_ends_with_its_line() -> None:
    word = word_at('intrinsic x { call "llvm.\n cycles gfx942=1 }', 22)
    assert word is not None
    assert word.text == '"llvm.'
    assert [field.keyword.text for field in items(HALF)[1].fields][-2:] == ["cycles", "alias"]
