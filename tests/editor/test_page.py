"""The page about editors: what it has one paste is well-formed, and starts the server."""

from __future__ import annotations

import json
import re
import textwrap
from typing import Any

import pytest

from tests.test_readme import ROOT

PAGE = (ROOT / "docs/editor.md").read_text()


def pasted(editor: str) -> list[str]:
    """What is to be pasted of the section of an editor: its indented blocks."""
    section = re.split(rf"^## {editor}\n", PAGE, flags=re.MULTILINE)[1].split("\n## ")[0]
    found = re.findall(r"(?:^(?: {4}[^\n]*)?\n)*^ {4}[^\n]*\n", section, re.MULTILINE)
    return [textwrap.dedent(block).strip() for block in found]


def test_every_editor_starts_the_server() -> None:
    sections = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    assert [section.partition("\n")[0] for section in sections] == [
        "VS Code", "Neovim", "Emacs", "Helix",
    ]  # fmt: skip
    for section in sections:
        assert re.search(r'"mfmadsl"', section)
        assert re.search(r'"lsp"', section)


def test_what_vs_code_reads_names_the_grammar_and_the_server() -> None:
    package, settings = map(json.loads, pasted("VS Code"))
    (grammar,) = package["contributes"]["grammars"]
    colours = json.loads((ROOT / "grammars" / grammar["path"]).read_text())
    assert colours["scopeName"] == grammar["scopeName"]
    (language,) = package["contributes"]["languages"]
    assert settings["glspc.server.languageId"] == [language["id"]] == [grammar["language"]]
    assert language["extensions"] == [".mfma"]


def test_what_helix_reads_names_the_server() -> None:
    tomllib: Any = pytest.importorskip("tomllib")
    (text,) = pasted("Helix")
    found = tomllib.loads(text)
    (language,) = found["language"]
    assert list(found["language-server"]) == language["language-servers"]
