"""The mistakes of open texts are those of `mfmadsl check`, wherever they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mfmadsl.editor.diagnostics import EditorDiagnostic, problems
from mfmadsl.editor.text import Change, Range, TextPosition
from mfmadsl.editor.workspace import Workspace, path_of
from mfmadsl.language.document import LARGEST_FILE
from tests.cli.command import run
from tests.language.entries import HALF
from tests.test_docs import SECTIONS

WRONG = "layout own(x, k) {{ lane = {} register = k }}\n"
"""A layout of which a word is no parameter."""


def opened(path: Path, text: str, workspace: Workspace | None = None) -> Workspace:
    return (workspace or Workspace()).opened(path.as_uri(), text)


def mistakes(workspace: Workspace, path: Path) -> list[EditorDiagnostic]:
    """Those at a file; what is said of a `use` is none."""
    return [problem for problem in problems(workspace)[path.as_uri()] if problem.code]


@pytest.mark.parametrize(("code", "text"), SECTIONS, ids=[code for code, _ in SECTIONS])
def test_they_are_those_of_check(code: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "example.mfma"
    path.write_text(text)
    told = json.loads(run("check", path, "--format", "json").stdout)["diagnostics"]
    found = mistakes(opened(path, text), path)
    assert code in [problem.code for problem in found]
    assert [
        (p.code, p.message, p.hint, *p.range.start, *p.range.end) for p in found
    ] == [
        (d["code"], d["message"], d["hint"], d["line"] - 1, d["column"] - 1, d["end_line"] - 1,
         d["end_column"] - 1) for d in told
    ]  # fmt: skip
    assert all(p.page.endswith(f"docs/diagnostics.md#{p.code}") for p in found)


def test_places_count_units_of_utf_16(tmp_path: Path) -> None:
    path = tmp_path / "x.mfma"
    (found,) = mistakes(opened(path, "use layouts\r\n/* \U0001f600 */ use none"), path)[1:]
    assert (found.code, found.range) == ("use", Range(TextPosition(1, 13), TextPosition(1, 17)))
    utf32 = Workspace(encoding="utf-32")
    (found,) = mistakes(opened(path, "use layouts\r\n/* \U0001f600 */ use none", utf32), path)[1:]
    assert found.range.start == TextPosition(1, 12)


def test_the_text_of_the_editor_counts_and_not_that_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.mfma"
    path.write_text("use none\n")
    workspace = opened(path, "use layouts\n")
    assert mistakes(workspace, path) == []
    change = Change(Range(TextPosition(0, 4), TextPosition(0, 11)), "nowhere")
    (found,) = mistakes(workspace.changed(path.as_uri(), [change]), path)
    assert "no `nowhere.mfma`" in found.message


def test_what_an_editor_has_of_a_file_that_is_used_counts_too(tmp_path: Path) -> None:
    own, path = tmp_path / "own.mfma", tmp_path / "x.mfma"
    own.write_text(WRONG.format("x"))
    workspace = opened(path, "use own\n", opened(own, WRONG.format("y")))
    assert [p.code for p in mistakes(workspace, own)] == ["unknown-name"]
    assert mistakes(workspace, path) == []
    (told,) = problems(workspace)[path.as_uri()]
    assert told.message == "`own` has 1 mistake, in own.mfma"
    assert told.related[0].uri == own.as_uri()
    mended = workspace.changed(own.as_uri(), [Change(None, WRONG.format("x"))])
    assert problems(mended) == {own.as_uri(): [], path.as_uri(): []}


def test_mistakes_of_files_that_are_not_open_are_at_those_files_once(tmp_path: Path) -> None:
    own, one, other = (tmp_path / f"{name}.mfma" for name in ("own", "one", "other"))
    own.write_text(WRONG.format("y"))
    workspace = opened(other, "use own\n", opened(one, "use own\n"))
    found = problems(workspace)
    assert [p.code for p in found[own.as_uri()]] == ["unknown-name"]
    assert set(found) == {p.as_uri() for p in (own, one, other)}
    assert set(problems(workspace.closed(one.as_uri()).closed(other.as_uri()))) == set()


def test_a_file_on_the_disk_is_read_again_when_it_may_have_changed(tmp_path: Path) -> None:
    own, path = tmp_path / "own.mfma", tmp_path / "x.mfma"
    workspace = opened(path, "use own\n")
    assert [p.code for p in mistakes(workspace, path)] == ["use"]
    own.write_text(WRONG.format("x"))
    assert mistakes(workspace.read_again(), path) == []


def test_what_does_not_use_what_changed_is_not_checked_again(tmp_path: Path) -> None:
    own, user, other = (tmp_path / f"{name}.mfma" for name in ("own", "user", "other"))
    own.write_text("")
    workspace = opened(other, HALF, opened(user, "use own\n", opened(own, "")))
    problems(workspace)
    changed = workspace.changed(own.as_uri(), [Change(None, "// note")])
    assert set(changed.known) == {other.as_uri()}
    assert changed.checked(other.as_uri()) is workspace.checked(other.as_uri())


def test_a_folder_that_is_named_is_searched(tmp_path: Path) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "own.mfma").write_text(WRONG.format("x"))
    path = tmp_path / "x.mfma"
    assert mistakes(opened(path, "use own\n", Workspace(search=(folder,))), path) == []


def test_a_text_without_a_file_is_checked(tmp_path: Path) -> None:
    workspace = Workspace().opened("untitled:Untitled-1", HALF)
    assert problems(workspace) == {"untitled:Untitled-1": []}


def test_a_text_that_is_too_large_is_refused_as_its_file_is(tmp_path: Path) -> None:
    path = tmp_path / "x.mfma"
    text = "//" + "x" * LARGEST_FILE
    path.write_text(text)
    (told,) = json.loads(run("check", path, "--format", "json").stdout)["diagnostics"]
    (found,) = mistakes(opened(path, text), path)
    assert (found.code, found.message) == (told["code"], told["message"])
    assert found.range == Range(TextPosition(0, 0), TextPosition(0, 0))


def test_a_link_looks_beside_itself_as_check_does(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    file, link = tmp_path / "there" / "x.mfma", tmp_path / "link.mfma"
    file.write_text("use own\n")
    (tmp_path / "own.mfma").write_text(WRONG.format("x"))
    link.symlink_to(file)
    assert run("check", link).exit_code == 0
    assert mistakes(opened(link, "use own\n"), link) == []
    assert [p.code for p in mistakes(opened(file, "use own\n"), file)] == ["use"]


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b%20c.mfma", "/a/b c.mfma"),
        ("file://localhost/a.mfma", "/a.mfma"),
        ("file:///a%C3%A9.mfma", "/a\u00e9.mfma"),
        ("file://host/a.mfma", None),
        ("untitled:Untitled-1", None),
        ("file:///a%00b", None),
        ("file:a.mfma", None),
        ("file://[", None),
        ("", None),
    ],
)
def test_a_uri_names_a_file_or_none(uri: str, path: str | None) -> None:
    assert path_of(uri) == (None if path is None else Path(path))
