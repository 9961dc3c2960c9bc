"""What README and docs show is what happens."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from mfmadsl.cli import main
from mfmadsl.language import load_source
from mfmadsl.language.diagnostic import Source

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def sessions(text: str) -> list[tuple[str, str]]:
    """(command, output) of every prompt on a page."""
    found = []
    for block in blocks(text, "console"):
        for piece in block.split("$ ")[1:]:
            command, _, output = piece.partition("\n")
            found.append((command, output))
    return found


def files(text: str) -> dict[str, str]:
    """The blocks that a reader is told to save, by the name that stands behind the language."""
    found = re.findall(r"^```\w+ (\S+\.\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return dict(found)


def printed(program: str, arguments: list[str]) -> str:
    """What a command of a page prints, in the current folder."""
    if program == "mfmadsl" and arguments[0] != "device":
        return CliRunner().invoke(main, arguments).output
    command = {"mfmadsl": [sys.executable, "-m", "mfmadsl"], "python": [sys.executable]}[program]
    words = [sys.executable if word == "python" else word for word in arguments]
    done = subprocess.run(
        [*command, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.stdout


def assert_shown(text: str) -> int:
    """Every command of a page prints what it shows, one after the other; how many there are."""
    for command, shown in sessions(text):
        program, *arguments = shlex.split(command)
        output = printed(program, arguments)
        assert re.fullmatch(pattern(shown), output, re.DOTALL), f"{command}\n{output}"
    return len(sessions(text))


def pattern(shown: str) -> str:
    """`...` stands for anything."""
    return re.escape(shown).replace(re.escape("..."), ".*")


def test_the_commands_of_the_readme_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (spec,) = blocks(README, "mfma")
    (tmp_path / "wrong.mfma").write_text(
        spec.replace("operand(i, k, pack=4)", "operand(i, k, pack=2)")
    )
    monkeypatch.chdir(tmp_path)
    assert assert_shown(README) >= 6


def test_the_readme_is_one_that_is_read() -> None:
    assert len(README.splitlines()) <= 120


def test_the_instruction_of_the_readme_is_that_of_the_example() -> None:
    assert blocks(README, "mfma") == [(ROOT / "examples/half.mfma").read_text()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_programs_that_are_shown_run(page: Path, tmp_path: Path) -> None:
    for program in blocks(page.read_text(), "python"):
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_piece_of_the_language_that_is_shown_is_correct(page: Path) -> None:
    for block in blocks(page.read_text(), "mfma"):
        load_source(Source(page.name, block))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target
