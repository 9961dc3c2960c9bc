"""One exception above all others, and which there are."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import mfmadsl
from mfmadsl.error import ArgumentError, ArgumentTypeError, MfmadslError
from tests.test_readme import ROOT

PACKAGE = ROOT / "mfmadsl"
INTERNAL = {
    "AccessError",
    "CompileError",
    "NoClosedFormError",
    "OperandError",
    "NotNumbersError",
    "NotUnderstoodError",
    "ProcessEndedError",
}  # caught before a user sees them
BUILTIN = {"ValueError", "TypeError", "RuntimeError", "KeyError", "Exception", "OSError",
           "ImportError", "NotImplementedError"}  # fmt: skip


@cache
def trees() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(path.read_text())) for path in PACKAGE.rglob("*.py")]


def test_every_exception_derives_from_ours() -> None:
    own = {"MfmadslError"}
    for path, tree in trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef):
                continue
            bases = {ast.unparse(base) for base in node.bases}
            if node.name.endswith("Error") or bases & BUILTIN:
                assert node.name == "MfmadslError" or bases & {
                    "MfmadslError", "ArgumentError"
                }, f"{path}: {node.name}"  # fmt: skip
                own.add(node.name)
    exported = {n for n in mfmadsl.__all__ if n.endswith("Error")}
    assert own - INTERNAL == exported
    assert all(issubclass(getattr(mfmadsl, name), MfmadslError) for name in exported)


def test_nothing_raises_an_exception_of_pythons() -> None:
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                name = ast.unparse(node.exc.func)
                # An OSError becomes an OutputError in the same file; a method that is not
                # implemented is one of a base class.
                assert name not in BUILTIN - {"OSError", "NotImplementedError"}, (
                    f"{path}:{node.lineno}: {name}"
                )


def test_the_page_of_exceptions_has_each_of_them() -> None:
    page = (ROOT / "docs/errors.md").read_text()
    told = set(re.findall(r"^\| `(\w+Error)` \|", page, re.MULTILINE))
    assert told == {n for n in mfmadsl.__all__ if n.endswith("Error")} - {"MfmadslError"}


def test_what_was_caught_before_is_caught_still() -> None:
    with pytest.raises(ValueError, match="'gfx1100' is an RDNA chip"):
        mfmadsl.find("mfma_f32_16x16x16_f16", "gfx1100")
    with pytest.raises(TypeError, match="m: is an integer, not None"):
        mfmadsl.matmul(None, 2, 3, "float16", "float32")  # type: ignore[arg-type]
    assert issubclass(ArgumentTypeError, ArgumentError)


@pytest.mark.parametrize("size", [0, -1, 2**31, 10**100])
def test_a_matrix_has_a_row_or_more(size: int) -> None:
    with pytest.raises(ArgumentError, match="n: is a number from 1 to 2\\^31 - 1, not "):
        mfmadsl.matmul(16, size, 16, "float16", "float32")


def test_a_type_that_is_none_is_told_with_those_there_are() -> None:
    with pytest.raises(ArgumentError, match=r"in_dtype: there is no 'float17', but: .*float16"):
        mfmadsl.matmul(16, 16, 16, "float17", "float32")
