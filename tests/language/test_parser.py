"""Syntax: what is accepted, and what is said of the rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.language.diagnostic import MAXIMUM_MISTAKES, Source
from mfmadsl.language.parser import parse
from mfmadsl.language.syntax import IntrinsicItem, LayoutItem, Use
from tests.language.entries import HALF, diagnostics, only, spoiled


def test_a_file_is_uses_layouts_and_intrinsics() -> None:
    text = "layout pair(i, j) { lane = i register = j }\n" + HALF
    items, found = parse(Source("x", text))
    assert found == []
    assert [type(item) for item in items] == [LayoutItem, Use, IntrinsicItem]


def test_doc_comments_belong_to_the_item_that_follows() -> None:
    (use, item), _ = parse(Source("x", HALF))
    assert isinstance(use, Use)
    assert isinstance(item, IntrinsicItem)
    assert item.doc == "Half inputs."


def test_keywords_in_comments_and_strings_are_not_items() -> None:
    text = "// layout or intrinsic or use\n/// To use a layout.\n" + HALF.split("\n", 3)[3]
    items, found = parse(Source("x", text))
    assert found == []
    assert [type(item) for item in items] == [IntrinsicItem]


@pytest.mark.parametrize("text", ["", "\n\n", "// nothing here", "// a\n// b\n"])
def test_an_empty_file_is_no_mistake(text: str) -> None:
    assert parse(Source("x", text)) == ([], [])


@pytest.mark.parametrize(
    ("old", "new", "code", "message", "position", "hint"),
    [
        ("k=16\n", "k=16 #\n", "character", "unexpected character '#'", (5, 26), "expected"),
        ("}\n", "", "brace", "this `{` is never closed", (4, 33), "add the closing `}`"),
        ("shape ", "shap ", "syntax", "unexpected `shap`", (5, 3), "did you mean `shape`?"),
        ("pack=4)\n  b", "pack=1+)\n  b", "syntax", "unexpected `)`", (6, 51), "a number"),
        ("gfx942=16", "gfx942=9999999999", "number", "too large", (10, 28), "9 digits"),
        ('16f16"\n', "16f16\n", "character", "unexpected character '\"'", (9, 11), "a string"),
    ],
)  # fmt: skip
def test_a_syntax_error_says_what_is_wrong_where_and_how_to_mend_it(
    old: str, new: str, code: str, message: str, position: tuple[int, int], hint: str
) -> None:
    found = only(spoiled(old, new))
    assert found.code == code
    assert message in found.message
    assert found.span.source.position(found.span.start) == position
    assert hint in found.hint


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "junk",
            "unexpected `junk`",
            "there are: accelerator, fragment, intrinsic, layout, microkernel, read, use",
        ),
        ("intrinsic", "the text ends too early", "expected a name"),
        ("/// lonely", "a doc comment with nothing to document", "ordinary comment"),
        ("layout l(i, j) { lane = i // 4 }", "this `{` is never closed", "division"),
    ],
)
def test_a_text_that_is_no_item(text: str, message: str, hint: str) -> None:
    found = only(text)
    assert message in found.message
    assert hint in found.hint


def test_every_broken_item_is_reported_and_the_good_ones_survive() -> None:
    text = "use 1\n" + HALF + "layout l( { }\nintrinsic x {"
    items, found = parse(Source("x", text))
    assert [type(item) for item in items] == [Use, IntrinsicItem]
    assert [d.span.source.position(d.span.start)[0] for d in found] == [1, 14, 15]


def test_a_file_of_mistakes_ends_after_some() -> None:
    found = diagnostics("use 1\n" * 1000)
    assert len(found) == MAXIMUM_MISTAKES + 1
    assert found[-1].message == "too many mistakes: 900 items from here on are not checked"


def test_a_name_that_no_file_can_have_is_refused() -> None:
    found = only(spoiled("intrinsic mfma", "intrinsic " + "x" * 5000))
    assert (found.code, found.message) == ("name", "the name has 5017 letters")


def test_a_number_that_is_too_large_is_told_with_what_it_is_for() -> None:
    found = only(spoiled("m=16", f"m={2**40}"))
    assert (found.code, found.message) == ("number", f"m={2**40} is too large")
    assert found.hint == "`m` is the size of one instruction's tile, at most 128"


def test_an_item_of_more_words_than_anybody_writes_is_refused() -> None:
    parameters = ", ".join(f"p{i}" for i in range(2000))
    found = only(f"layout l({parameters}) {{ lane = p0 register = p1 }}")
    assert (found.code, found.hint) == ("size", "write several items")


def test_an_expression_that_would_exhaust_the_stack_is_refused() -> None:
    long = "+".join("1" * 1000)
    found = only(f"layout l(i, j) {{ lane = {long} register = j }}")
    assert found.code == "expression"
    deep = "(" * 5000 + "1" + ")" * 5000
    assert parse(Source("x", f"layout l(i, j) {{ lane = {deep} register = j }}"))


@pytest.mark.parametrize(
    ("text", "word", "keyword"),
    [
        ("useuse", "useuse", "use"),
        ("layoutrows(x) { lane = x register = 0 }", "layoutrows", "layout"),
        ("intrinsic x { shapem=16 }", "shapem", "shape"),
        ("intrinsic x { a int8[i, k] atrows(i, k) }", "atrows", "at"),
        ('microkernel x { a int8[i, k] at l(i) broadcastcall "x" }', "broadcastcall", "broadcast"),
        ("read x { from_lane5 }", "from_lane5", "from_lane"),
    ],
)
def test_a_keyword_is_a_word_of_its_own(text: str, word: str, keyword: str) -> None:
    items, (found,) = parse(Source("x", text))
    assert items == []
    assert (found.code, found.message, found.span.text) == ("syntax", f"unexpected `{word}`", word)
    assert found.hint == f"write a space after `{keyword}`"


def test_signs_and_numbers_need_no_spaces_around_them() -> None:
    text = 'intrinsic x{shape m=16n=16k=16a int8[i,k]at l(i,k=4)call"x"cycles gfx942=4}'
    assert parse(Source("x", text))[1] == []


@given(st.text(st.sampled_from('use layout intrinsic{}()[]=,+-*/%0123"\n//ijk'), max_size=200))
def test_no_text_is_more_than_the_parser_can_take(text: str) -> None:
    _, found = parse(Source("x", text))
    for diagnostic in found:
        assert diagnostic.message in str(diagnostic)
