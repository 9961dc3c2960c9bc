"""The code is clean by the project's own rules."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
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


def test_no_public_class_is_called_like_that_of_another_module() -> None:
    """Generated modules take their runtime along, which has classes of its own."""
    found = defaultdict(set)
    for path in (ROOT / "mfmadsl").rglob("*.py"):
        if "_mfma_runtime" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].add(path)
    assert len(found) > 100
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}
