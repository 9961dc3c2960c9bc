"""The server as an editor meets it: a process, and messages over its pipes."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mfmadsl.language import library_files
from mfmadsl.language.document import LARGEST_FILE
from mfmadsl.resources import resource_folder
from tests.cli.command import run
from tests.editor.client import Client, position, span
from tests.language.entries import HALF

WRONG = HALF.replace("m=16", "m=32")


@pytest.fixture
def client() -> Iterator[Client]:
    started = Client()
    try:
        started.start()
        yield started
        assert started.end() == 0
    finally:
        if started.process.returncode is None:
            started.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spec.mfma"


def test_it_says_what_it_can_do() -> None:
    client = Client()
    found = client.start()
    can = found["capabilities"]
    assert found["serverInfo"]["name"] == "mfmadsl"
    assert can["positionEncoding"] == "utf-16"
    assert can["textDocumentSync"]["openClose"] is True
    assert can["textDocumentSync"]["change"] == 2  # incremental; a change without a range is of all
    for provider in ("hover", "definition", "documentSymbol", "documentFormatting"):
        assert can[f"{provider}Provider"]
    assert can["completionProvider"]["triggerCharacters"] == ['"', "."]
    assert client.end() == 0


def test_mistakes_are_published_as_one_types(client: Client, path: Path) -> None:
    client.open(path, WRONG)
    told = client.diagnostics(path, 1)
    assert {d["code"] for d in told} == {"lane", "name", "call"}
    assert all(d["severity"] == 1 and d["source"] == "mfmadsl" for d in told)
    (named,) = (d for d in told if d["code"] == "name" and "v_" not in HALF.splitlines()[
        d["range"]["start"]["line"]])  # fmt: skip
    assert named["message"] == "the name says another shape than 32x16x16"
    assert named["range"] == span(WRONG, "mfma_f32_16x16x16_f16")
    assert named["codeDescription"]["href"].endswith("docs/diagnostics.md#name")
    client.change(path, [{"range": span(WRONG, "32 n"), "text": "16 n"}], 2)
    assert client.diagnostics(path, 2) == []
    client.change(path, [{"text": WRONG}], 3)
    assert client.diagnostics(path, 3) == told
    client.tell("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}})
    assert client.diagnostics(path) == []


def test_a_hint_is_the_second_line_of_a_message(client: Client, path: Path) -> None:
    client.open(path, HALF.replace("float16[i", "flaot16[i"))
    (told,) = (d for d in client.diagnostics(path, 1) if d["code"] == "type")
    first, second = told["message"].splitlines()
    assert first == "`flaot16` is no element type"
    assert second == "hint: did you mean `float16`?"


def test_edits_count_units_of_utf_16_and_lines_of_the_protocol(client: Client, path: Path) -> None:
    """A form feed and a line separator end no line of a client, as they do one of Python's."""
    text = "// \U0001f600\u2028 \x0c\r\nuse layouts\ruse none // \U0001f600 here"
    client.open(path, text)
    (told,) = client.diagnostics(path, 1)
    assert told["range"] == {
        "start": {"line": 2, "character": 4}, "end": {"line": 2, "character": 8},
    }  # fmt: skip
    edits: list[dict[str, Any]] = [
        {"range": {"start": {"line": 2, "character": 12}, "end": {"line": 2, "character": 14}},
         "text": "x"},  # the astral character
        {"range": told["range"], "text": "layouts"},
    ]  # fmt: skip
    client.change(path, edits, 2)
    assert client.diagnostics(path, 2) == []
    outcome = client.ask_of("formatting", path, options={"tabSize": 2, "insertSpaces": True})
    assert "use layouts\nuse layouts  // x here\n" in outcome[0]["newText"]


def test_half_of_a_character_is_a_character_too(client: Client, path: Path) -> None:
    client.open(path, "use layouts \ud83d")
    (told,) = client.diagnostics(path, 1)
    assert told["message"].startswith("unexpected character")


def test_positions_count_what_the_client_prefers(path: Path) -> None:
    client = Client()
    found = client.start(general={"positionEncodings": ["utf-32", "utf-16"]})
    assert found["capabilities"]["positionEncoding"] == "utf-32"
    client.open(path, "use layouts\n/* \U0001f600 */ use none")
    told = [d for d in client.diagnostics(path, 1) if d["code"] == "use"]
    assert told[0]["range"]["start"] == {"line": 1, "character": 12}
    assert client.end() == 0


def test_hover(client: Client, path: Path) -> None:
    client.open(path, HALF)
    found = client.ask_of("hover", path, position=position(HALF, "accumulator"))
    assert found["contents"]["kind"] == "markdown"
    assert "layout accumulator(i, j) {" in found["contents"]["value"]
    assert found["range"] == span(HALF, "accumulator")
    nothing = client.ask_of("hover", path, position=position(HALF, "Half inputs"))
    assert nothing is None


def test_completion(client: Client, path: Path) -> None:
    text = HALF.replace("accumulator(i, j)", "acc(i, j)")
    client.open(path, text)
    found = client.ask_of("completion", path, position=position(text, "acc(", 2))
    (item,) = (i for i in found["items"] if i["label"] == "accumulator")
    assert item["textEdit"] == {"range": span(text, "acc"), "newText": "accumulator"}
    assert item["detail"] == "accumulator(i, j), in layouts.mfma of the library"
    assert sorted(found["items"], key=lambda i: str(i["sortText"])) == found["items"]


def test_definition(client: Client, path: Path) -> None:
    own = path.with_name("own.mfma")
    own.write_text("layout lie(x, k) { lane = x register = k }\n")
    text = HALF.replace("use layouts", "use layouts\nuse own").replace("accumulator", "lie")
    client.open(path, text)
    found = client.ask_of("definition", path, position=position(text, "lie"))
    assert found["uri"] == own.as_uri()
    assert found["range"]["start"] == {"line": 0, "character": 7}
    found = client.ask_of("definition", path, position=position(text, "use layouts", 6))
    assert found["uri"] == (resource_folder("intrinsics") / "layouts.mfma").resolve().as_uri()
    client.open(own, "// one more line\n" + own.read_text())
    found = client.ask_of("definition", path, position=position(text, "lie"))
    assert found["range"]["start"] == {"line": 1, "character": 7}


def test_an_outline(client: Client, path: Path) -> None:
    client.open(path, HALF)
    (found,) = client.ask_of("documentSymbol", path)
    assert (found["name"], found["detail"]) == ("mfma_f32_16x16x16_f16", "intrinsic")
    assert found["selectionRange"] == span(HALF, "mfma_f32_16x16x16_f16 {"[:-2] + " {") | {
        "end": position(HALF, "mfma_f32_16x16x16_f16 {", 21)}  # fmt: skip


def test_formatting_is_that_of_fmt(client: Client, path: Path) -> None:
    options = {"tabSize": 2, "insertSpaces": True}
    messy = HALF.replace("  ", " ")
    path.write_text(messy)
    client.open(path, messy)
    (edit,) = client.ask_of("formatting", path, options=options)
    assert run("fmt", path).exit_code == 0
    assert edit["newText"] == path.read_text() == HALF
    last = messy.count("\n")
    assert edit["range"] == {
        "start": {"line": 0, "character": 0}, "end": {"line": last, "character": 0},
    }  # fmt: skip
    client.change(path, [{"text": HALF}], 2)
    assert client.ask_of("formatting", path, options=options) == []
    client.change(path, [{"text": HALF.replace("}", "")}], 3)
    assert client.ask_of("formatting", path, options=options) == []
    assert "spec.mfma has mistakes, and is not" in client.heard("window/logMessage")["message"]


def test_a_file_that_is_used_and_changes_is_seen(client: Client, path: Path) -> None:
    own = path.with_name("own.mfma")
    client.open(path, "use own\n")
    assert [d["code"] for d in client.diagnostics(path, 1)] == ["use"]
    own.write_text("layout lie(x, k) { lane = y register = k }\n")
    change = {"uri": own.as_uri(), "type": 1}
    client.tell("workspace/didChangeWatchedFiles", {"changes": [change]})
    (told,) = client.diagnostics(path, 1)
    assert (told["severity"], "code" in told) == (3, False)
    assert told["relatedInformation"][0]["location"]["uri"] == own.as_uri()
    assert [d["code"] for d in client.diagnostics(own)] == ["unknown-name"]
    own.write_text("layout lie(x, k) { lane = x register = k }\n")
    client.tell("textDocument/didSave", {"textDocument": {"uri": path.as_uri()}})
    assert client.diagnostics(path, 1) == []
    assert client.diagnostics(own) == []


def test_a_client_that_watches_files_is_asked_to_watch_ours() -> None:
    client = Client()
    client.start(workspace={"didChangeWatchedFiles": {"dynamicRegistration": True}})
    (wanted,) = client.heard("client/registerCapability")["registrations"]
    assert wanted["method"] == "workspace/didChangeWatchedFiles"
    assert wanted["registerOptions"]["watchers"] == [{"globPattern": "**/*.mfma"}]
    assert client.end() == 0


def test_a_document_that_is_not_open_has_no_answers(client: Client, path: Path) -> None:
    for method in ("hover", "definition"):
        assert client.ask_of(method, path, position={"line": 0, "character": 0}) is None
    found = client.ask_of("completion", path, position={"line": 0, "character": 0})
    assert found["items"] == []
    assert client.ask_of("documentSymbol", path) == []
    assert client.ask_of("formatting", path, options={"tabSize": 2, "insertSpaces": True}) == []


def test_strange_messages_end_nothing(client: Client, path: Path) -> None:
    """An edit of what was never opened, places that are not there, a URI that is none."""
    client.change(path, [{"text": HALF}], 1)
    assert client.diagnostics(path, 1) == []
    far = {"line": 10**9, "character": 10**9}
    client.change(path, [{"range": {"start": far, "end": far}, "text": "use none"}], 2)
    assert [d["code"] for d in client.diagnostics(path, 2)] == ["use"]
    client.open("untitled:Untitled-1", HALF)
    assert client.diagnostics("untitled:Untitled-1", 1) == []
    client.open("file://[", HALF)
    assert client.diagnostics("file://[", 1) == []
    client.tell("textDocument/didClose", {"textDocument": {"uri": "file:///never"}})
    assert client.ask_of("hover", path, position=far) is None


def test_a_text_that_is_too_large_is_refused(client: Client, path: Path) -> None:
    client.open(path, "//" + "x" * LARGEST_FILE)
    (told,) = client.diagnostics(path, 1)
    assert (told["code"], "is larger than 1024 KiB" in told["message"]) == ("file", True)


def test_the_library_has_no_mistakes(client: Client) -> None:
    for number, file in enumerate(library_files()[:4]):
        client.open(file, file.read_text(), number)
        assert client.diagnostics(file, number) == []


def test_it_looks_where_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "own.mfma").write_text("")
    client = Client("-I", str(tmp_path / "more"))
    client.start()
    client.open(tmp_path / "x.mfma", "use own\n")
    assert client.diagnostics(tmp_path / "x.mfma", 1) == []
    assert client.end() == 0


def test_an_end_without_a_goodbye_is_exit_code_1() -> None:
    client = Client()
    client.start()
    client.tell("exit")
    assert client.wait() == 1
    client = Client()
    client.start()
    assert client.process.stdin is not None
    client.process.stdin.close()  # the editor has died
    assert client.process.wait(timeout=60) == 1
    client.close()


def test_without_pygls_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    result = run("lsp")
    assert result.exit_code == 1
    assert result.stderr == ("error: the language server needs pygls: pip install 'mfmadsl[lsp]'\n")


def test_it_imports_neither_tvm_nor_the_emulator() -> None:
    code = (
        "import sys; from mfmadsl.editor.server import make_server; make_server();"
        "from mfmadsl.editor.workspace import Workspace; from mfmadsl.editor import *;"
        "from mfmadsl.editor.hover import hover; from mfmadsl.language import library_files;"
        "w = Workspace().opened('file:///x', library_files()[0].read_text());"
        "c = w.checked('file:///x');"
        "assert any(hover(c, i) for i in range(0, 3000, 7));"
        "print([m for m in sys.modules if m.split('.')[0] in ('tvm', 'tvm_ffi')"
        " or m.startswith('mfmadsl.emulator')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
