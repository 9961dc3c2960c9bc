"""Whatever a text is, each question about each place of it has an answer, and soon."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfmadsl.editor.completion import completions
from mfmadsl.editor.definition import definition
from mfmadsl.editor.diagnostics import problems
from mfmadsl.editor.formatting import formatted
from mfmadsl.editor.hover import hover
from mfmadsl.editor.symbols import symbols
from mfmadsl.editor.text import Change, Range, TextPosition
from mfmadsl.editor.workspace import Workspace
from mfmadsl.language import check_source, library_files
from tests.language.test_fuzz import SENTENCES, WORDS

SMALL = ("layouts", "vectors", "f16", "f64", "reads", "sparse_f16", "f8f6f4", "xf32", "sse2")
TEXTS = [path.read_text() for path in library_files() if path.stem in SMALL]
STRANGE = ["\r\n", "\r", "\u2028", "\x0c", "\U0001f600", "\u00e9", "\ud83d", "\0", '"', "//", "`"]
URI = "file:///nowhere/fuzz.mfma"

pieces = st.sampled_from([*WORDS, *STRANGE, "\n", " ", "microkernel", "fragment", "holds"])
inserted = st.lists(pieces, max_size=4).map(" ".join)
positions = st.builds(TextPosition, st.integers(0, 80), st.integers(0, 70))
changes = st.builds(
    Change, st.one_of(st.builds(Range, positions, positions), st.none()), inserted
) | st.builds(lambda at, text: Change(Range(at, at), text), positions, inserted)
starts = st.sampled_from(TEXTS) | st.sampled_from(TEXTS).map(lambda t: t.replace("\n", "\r\n"))


def ask(workspace: Workspace, place: TextPosition) -> None:
    """Every question about a place of the text, whose answers lie within it."""
    text = workspace.documents[URI].text
    checked, offset = workspace.checked(URI), text.offset(place)
    assert 0 <= offset <= len(text.text)
    shown = hover(checked, offset)
    if shown is not None:
        assert shown.text
        assert shown.start <= offset <= shown.end
    for completion in completions(checked, offset):
        assert completion.start <= offset <= completion.end
        assert "\n" not in text.text[completion.start : completion.end]
    found = definition(checked, offset)
    assert found is None or 0 <= found.start <= found.end <= len(found.source.text)


def ask_of_all(workspace: Workspace) -> None:
    text = workspace.documents[URI].text
    for symbol in symbols(text.text):
        assert 0 <= symbol.start <= symbol.name_start <= symbol.name_end <= symbol.end
        assert symbol.end <= len(text.text)
    told = problems(workspace)[URI]
    source = workspace.documents[URI].source
    checked = check_source(source, Path("/nowhere/fuzz.mfma"))
    assert [p.message for p in told] == [d.message for d in checked.diagnostics]
    for problem in told:
        assert problem.range.start <= problem.range.end
    canonical = formatted(source)
    if canonical is not None:
        assert formatted(type(source)(source.name, canonical)) == canonical


@given(starts, st.lists(changes, min_size=1, max_size=4), st.lists(positions, max_size=8))
@settings(max_examples=150)
def test_library_files_with_edits(
    start: str, edits: list[Change], places: list[TextPosition]
) -> None:
    workspace = Workspace().opened(URI, start).changed(URI, edits)
    for place in places:
        ask(workspace, place)
    ask_of_all(workspace)


@given(st.lists(pieces, max_size=40).map(" ".join), st.lists(positions, max_size=8))
@settings(max_examples=150)
def test_words_in_any_order(text: str, places: list[TextPosition]) -> None:
    workspace = Workspace().opened(URI, text)
    for place in places:
        ask(workspace, place)
    ask_of_all(workspace)


@given(SENTENCES, st.data())
def test_what_the_grammar_has(text: str, data: st.DataObject) -> None:
    workspace = Workspace().opened(URI, text)
    for _ in range(4):
        ask(workspace, workspace.documents[URI].text.position(data.draw(st.integers(0, len(text)))))
    ask_of_all(workspace)


@given(st.text(max_size=60), positions)
def test_any_text(text: str, place: TextPosition) -> None:
    workspace = Workspace().opened(URI, text)
    ask(workspace, place)
    ask_of_all(workspace)


def test_every_place_of_a_file_that_is_written_letter_by_letter() -> None:
    text = next(t for t in TEXTS if "layout rows" in t or "layout operand" in t)[-400:]
    for end in range(0, len(text), 3):
        workspace = Workspace().opened(URI, text[:end])
        ask(workspace, workspace.documents[URI].text.position(end))


@pytest.mark.thorough
def test_a_text_of_one_long_line_and_one_of_many() -> None:
    for text in ("{" * 60_000, "use x " * 12_000, "\n" * 60_000, "\U0001f600" * 20_000,
                 "intrinsic x { a " + "(" * 60_000, "intrinsic " * 20_000):  # fmt: skip
        workspace = Workspace().opened(URI, text)
        ask(workspace, TextPosition(0, len(text)))
        ask_of_all(workspace)
