"""The explorer's page: one file, small, that says what the library says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mfmadsl.language import find, library, microkernels
from mfmadsl.report.explorer.data import explorer_data, operations_per_cycle
from tests.cli.command import run, spec
from tests.language.entries import HALF


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    assert run("explore", "-o", path).exit_code == 0
    return path.read_text()


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_it_is_small_and_needs_nothing_else(text: str) -> None:
    assert len(text.encode()) < 3_000_000
    assert not re.search(r"""(src|href)\s*=|@import|url\(|https?://|fetch\(|XMLHttp""", text)


def test_it_has_the_whole_library(text: str) -> None:
    entries = {each["name"]: each for each in data_of(text)["entries"]}
    assert list(entries) == [*library(), *microkernels()]
    half = entries["mfma_f32_16x16x16_f16"]
    assert half["text"].startswith(
        "/// Half inputs, float accumulator, one 16x16 block.\nintrinsic"
    )
    assert [each["name"] for each in half["operands"]] == ["a", "b", "c"]
    assert all(each["text"].rstrip().endswith("}") for each in entries.values())


def test_operations_are_those_of_amds_tables() -> None:
    """Of f16 and f32 MI300X does 2048 and 256 a cycle and compute unit (CDNA3 white paper), MI100
    1024 and 256 (CDNA white paper)."""
    half, single = find("mfma_f32_32x32x8_f16"), find("mfma_f32_32x32x2_f32")
    assert operations_per_cycle(half)["gfx942"] == 2048
    assert operations_per_cycle(single)["gfx942"] == 256
    assert operations_per_cycle(half)["gfx908"] == 1024
    assert operations_per_cycle(single)["gfx908"] == 256


def test_it_is_the_same_every_time(text: str, tmp_path: Path) -> None:
    run("explore", "-o", tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text() == text


def test_no_text_of_an_entry_ends_the_script(tmp_path: Path) -> None:
    path = spec(tmp_path, HALF.replace("///", "/// </script><script>alert(1)</script>", 1))
    run("explore", path, "-o", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "alert(1)</script>" not in text
    assert "</script><script>alert(1)" in data_of(text)["entries"][0]["text"]


def test_a_layout_that_is_no_matrix_of_bits_goes_along_element_by_element() -> None:
    entry = find("mfma_f32_16x16x16_f16")
    plain = explorer_data([entry], [], {})["entries"][0]["operands"][0]
    assert "bases" in plain
    assert "places" not in plain


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nowhere.mfma"], 1, "cannot be read"),
        (["-o", "/"], 2, "/"),
        (["-I", "."], 2, "-I needs files"),
    ],
)
def test_what_cannot_be_explored_is_refused(arguments: list[str], code: int, message: str) -> None:
    done = run("explore", *arguments)
    assert (done.exit_code, message in done.stderr) == (code, True), done.stderr


def test_a_file_without_an_instruction_is_refused(tmp_path: Path) -> None:
    path = spec(tmp_path, "use layouts\n")
    done = run("explore", path, "-o", tmp_path / "page.html")
    assert done.exit_code == 1
    assert "describe no instruction" in done.stderr
    assert not (tmp_path / "page.html").exists()
