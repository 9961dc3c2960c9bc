"""Positions of the protocol: lines by three endings, characters by the units of an encoding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.editor.text import Change, Encoding, Range, Text, TextPosition

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
texts = st.text(st.sampled_from("ab\n\r\u2028\x0c\u00e9\u20ac\U0001f600\ud83d"), max_size=12)


@pytest.mark.parametrize(
    ("encoding", "character"), [("utf-8", 11), ("utf-16", 6), ("utf-32", 5)], ids=str
)
def test_a_character_counts_as_the_units_of_its_encoding(
    encoding: Encoding, character: int
) -> None:
    text = Text("\na\u00e9\u20ac\U0001f600bc", encoding)  # 1 + 2 + 3 + 4 + 1 bytes of UTF-8
    assert text.position(6) == TextPosition(1, character)
    assert text.offset(TextPosition(1, character)) == 6


def test_lines_end_in_three_ways_and_no_others() -> None:
    text = Text("a\r\nb\rc\nd\x0ce\u2028f\x85g")
    assert [text.position(text.text.index(x)).line for x in "abcdefg"] == [0, 1, 2, 3, 3, 3, 3]


def test_what_is_outside_is_the_nearest_place() -> None:
    text = Text("ab\r\ncd")
    assert text.offset(TextPosition(0, 9)) == 2  # and not the next line
    assert text.offset(TextPosition(9, 0)) == 6
    assert text.position(99) == TextPosition(1, 2)
    assert (
        Text("\U0001f600").offset(TextPosition(0, 1)) == 0
    )  # half of a character is that character


@given(texts, st.sampled_from(ENCODINGS), st.integers(0, 12))
def test_a_place_is_found_again(text: str, encoding: Encoding, offset: int) -> None:
    lines, offset = Text(text, encoding), min(offset, len(text))
    position = lines.position(offset)
    found = lines.offset(position)
    assert lines.position(found) == position
    assert found == offset or text[found : offset + 1] == "\r\n"  # within what ends a line


@given(texts, texts, st.integers(0, 12), st.integers(0, 12), st.sampled_from(ENCODINGS))
def test_an_edit_changes_its_range_and_nothing_else(
    text: str, new: str, one: int, other: int, encoding: Encoding
) -> None:
    lines = Text(text, encoding)
    start, end = (lines.offset(lines.position(min(x, len(text)))) for x in sorted((one, other)))
    edit = Change(lines.range(start, end), new)
    assert lines.changed([edit]).text == text[:start] + new + text[end:]


def test_each_edit_counts_in_what_the_one_before_it_left() -> None:
    zero = TextPosition(0, 0)
    edits = [
        Change(None, "one"),
        Change(Range(zero, zero), "\U0001f600"),
        Change(Range(TextPosition(0, 2), TextPosition(0, 3)), "O"),
    ]
    assert Text("what was").changed(edits).text == "\U0001f600One"
