"""The code is clean by the project's own rules."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = (
    "mfmadsl", "tests", "examples", "benchmarks", "scripts", "docs", "typings", "grammars",
    "intrinsics",
)  # fmt: skip
SOURCES = [
    path
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*"))
    if path.is_file() and not {"__pycache__", "_build"} & set(path.parts)
]


@pytest.mark.parametrize(
    "command",
    [["ruff", "check"], ["ruff", "format", "--check"], ["mypy", "--strict"]],
    ids=" ".join,
)
def test_linters_have_nothing_to_say(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_of_tvm_has_types() -> None:
    """`typings` has those that TVM lacks: in the kernels' own code nothing is just `Any`."""
    for path in SOURCES:
        if {ROOT / "mfmadsl" / "passes", ROOT / "mfmadsl" / "schedule"} & set(path.parents):
            assert not re.search(
                r"^from typing import .*\bAny\b", path.read_text(), re.MULTILINE
            ), path


def test_no_file_is_called_by_what_means_nothing() -> None:
    names = {path.stem for path in SOURCES}
    assert not names & {"utils", "util", "helpers", "common", "misc"}


def test_a_package_hands_on_names_and_nothing_else() -> None:
    for path in (ROOT / "mfmadsl").rglob("__init__.py"):
        if path.parent.name != "mfmadsl":
            own = r"^\s*(def (?!__getattr__)|class )"  # names may be handed on when they are asked
            assert not re.search(own, path.read_text(), re.MULTILINE), path
