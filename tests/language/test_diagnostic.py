"""How a mistake is shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.language.diagnostic import Diagnostic, LanguageError, Source, Span


def shown(text: str, start: int, end: int, hint: str = "") -> str:
    return str(Diagnostic("code", "message", Span(Source("x.mfma", text), start, end), hint))


def test_file_line_column_the_line_a_caret_and_a_hint() -> None:
    assert shown("one\ntwo three\n", 8, 13, "mend it") == (
        "error[code]: message\n"
        " --> x.mfma:2:5\n"
        "  |\n"
        "2 | two three\n"
        "  |     ^^^^^\n"
        "  = hint: mend it"
    )


def test_a_span_over_several_lines_is_underlined_on_its_first() -> None:
    assert shown("ab\ncd", 1, 5).splitlines()[-1] == "  |  ^"


def test_tabs_count_as_one_column_so_that_the_caret_stays_below_its_word() -> None:
    assert shown("\tx", 1, 2).splitlines()[-2:] == ["1 |  x", "  |  ^"]


def test_windows_line_ends_are_not_shown() -> None:
    assert "\r" not in shown("ab\r\ncd\r\n", 0, 2)


def test_of_a_very_long_line_a_window_is_shown() -> None:
    text = "x" * 5000 + "!" + "y" * 5000
    line, caret = shown(text, 5000, 5001).splitlines()[-2:]
    assert len(line) < 200
    assert line[caret.index("^")] == "!"


@given(st.text("a \n", max_size=60), st.data())
def test_line_and_column_lead_back_to_the_offset(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    line, column = Source("x", text).position(offset)
    assert sum(len(row) + 1 for row in text.split("\n")[: line - 1]) + column - 1 == offset


def test_an_error_carries_all_diagnostics_and_shows_them() -> None:
    span = Span(Source("x", "text"), 0, 1)
    error = LanguageError([Diagnostic("a", "first", span), Diagnostic("b", "second", span)])
    assert [d.code for d in error.diagnostics] == ["a", "b"]
    assert "first" in str(error)
    assert "second" in str(error)
