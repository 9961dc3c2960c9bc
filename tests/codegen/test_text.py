"""How generated modules read: short, each its own, in the form of this project's code."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path
from statistics import median

import pytest

from mfmadsl.codegen import module_text, write_modules
from mfmadsl.language import library
from mfmadsl.model import Intrinsic
from tests.codegen.snapshots import FOLDER, ROOT, snapshots

EVERY = pytest.mark.parametrize("intrinsic", library().values(), ids=lambda i: i.name)
TEXTS = {intrinsic: module_text(intrinsic) for intrinsic in library().values()}


@pytest.mark.parametrize("path", snapshots(), ids=lambda path: path.name)
def test_a_module_of_each_kind_is_the_one_that_was_read(path: Path) -> None:
    assert path.read_text() == snapshots()[path], (
        "python -m tests.codegen.snapshots, if it is meant"
    )


def test_there_is_no_other_snapshot() -> None:
    assert sorted(FOLDER.glob("*.py")) == sorted(snapshots())


def lines(text: str) -> list[str]:
    """Those that say what a module does: not its imports and the names it exports."""
    tree = ast.parse(text)
    exports = {
        line
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom | ast.If | ast.AnnAssign)
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    numbered = enumerate(text.splitlines(), 1)
    return [line.strip() for number, line in numbered if line.strip() and number not in exports]


def common(first: str, second: str) -> float:
    """The share of lines that two modules have in common."""
    one, other = Counter(lines(first)), Counter(lines(second))
    return (one & other).total() / max(one.total(), other.total())


def dense(intrinsic: Intrinsic) -> bool:
    return not intrinsic.sparse and not intrinsic.scales


@pytest.mark.thorough
def test_two_modules_differ_in_most_of_their_lines() -> None:
    texts = [text for intrinsic, text in TEXTS.items() if dense(intrinsic)]
    assert median(common(*pair) for pair in combinations(texts, 2)) < 0.5


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "most"), [("smfmac", 0.62), ("mfma_scale", 0.72)])
def test_modules_of_a_kind_are_not_a_template_with_numbers(kind: str, most: float) -> None:
    texts = [text for intrinsic, text in TEXTS.items() if intrinsic.name.startswith(kind)]
    assert median(common(*pair) for pair in combinations(texts, 2)) < most


@EVERY
def test_a_module_is_short_and_its_lines_are(intrinsic: Intrinsic) -> None:
    text = TEXTS[intrinsic].splitlines()
    assert max(map(len, text)) <= 100
    assert len(text) <= (215 if dense(intrinsic) else 220 if intrinsic.sparse else 290)


def test_modules_and_runtime_pass_the_linter_and_the_formatter(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    texts = {intrinsic.name: text for intrinsic, text in TEXTS.items()}
    write_modules(texts | {path.stem: text for path, text in snapshots().items()}, tmp_path)
    for command in (["check"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--no-cache", "."]
        done = subprocess.run(ruff, cwd=tmp_path, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def bound(tree: ast.Module) -> set[str]:
    """The public names that a module binds at its top, as an editor finds them."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            found.add(ast.unparse(node.target))
        elif isinstance(node, ast.Assign):
            found |= {x.id for x in ast.walk(node.targets[0]) if isinstance(x, ast.Name)}
    return {name for name in found if not name.startswith("_")}


@pytest.mark.parametrize(
    "text", [*TEXTS.values(), *snapshots().values()], ids=lambda text: text[3:45]
)
def test_all_that_is_exported_is_written_down(text: str) -> None:
    tree = ast.parse(text)
    (exported,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    assert set(exported) == bound(tree)
    assert len(exported) == len(set(exported))
    for trick in ("globals(", "setattr(", "vars(", "exec(", "eval("):
        assert trick not in text
