"""The command: its table, JSON, plot and exit codes; and the table that README.md shows."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from b200 import Counts, Fault, Kind
from examples.blackwell_gemm import plot, run
from examples.blackwell_gemm.check import Check
from examples.blackwell_gemm.ladder import STEPS
from examples.blackwell_gemm.lower import Lowered
from examples.nvcc import Cubin, NvccError

FOLDER = Path(__file__).parents[3] / "examples" / "blackwell_gemm"
FEW = (STEPS[0], STEPS[3])
RIGHT = Check((128, 128, 64), 0.5, (), Counts(mmas=1))
LOWERED = Lowered("", 128, 32780)


def called(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["run.py", *map(str, arguments)])
    return run.main()


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Two steps, no nvcc, and a folder to write to."""
    monkeypatch.setattr(run, "STEPS", FEW)
    monkeypatch.setattr(run, "find_nvcc", lambda: None)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_runs_from_any_folder(tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "run.py"), "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "--svg FILE" in done.stdout


@pytest.mark.thorough
def test_without_an_nvcc_all_else_is_there(
    few: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "--json", few / "found.json") == 0
    said = capsys.readouterr().out
    assert "no nvcc that knows sm_100a: pip install '.[cuda]'" in said
    assert re.search(r"^v1 .* right +128 +- +- +32780 ", said, re.MULTILINE)
    assert "the plot is in blackwell_gemm.svg" in said
    found = json.loads((few / "found.json").read_text())
    assert [row["kernel"] for row in found] == ["v1", "v4"]
    assert [row["registers"] for row in found] == [None, None]
    assert [row["right"] for row in found] == [True, True]
    assert found[1]["executed"]["stored"] == 256 * 384 * 2
    assert sorted(path.name for path in few.iterdir()) == ["blackwell_gemm.svg", "found.json"]


@pytest.mark.parametrize(
    "wrong",
    [
        replace(RIGHT, worst=1.01),
        replace(RIGHT, worst=float("inf")),
        replace(RIGHT, faults=(Fault(Kind.RACE, "two write", "here"),)),
    ],
)
def test_a_wrong_number_or_a_fault_is_exit_1(
    few: Path, wrong: Check, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter([RIGHT, wrong])
    monkeypatch.setattr(run, "check", lambda *_: next(answers))
    monkeypatch.setattr(run, "lower", lambda _: LOWERED)
    assert called(monkeypatch) == 1
    said = capsys.readouterr().out
    assert re.findall(r"^v\d+ .*?(right|WRONG)", said, re.MULTILINE) == ["right", "WRONG"]
    assert ("race: two write (here)" in said) == bool(wrong.faults)


def test_a_kernel_that_does_not_compile_is_exit_1(
    few: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> Cubin:
        raise NvccError("nvcc does not compile the kernel:\nso it says")

    monkeypatch.setattr(run, "find_nvcc", object)
    monkeypatch.setattr(run, "lower", lambda _: LOWERED)
    monkeypatch.setattr(run, "check", lambda *_: RIGHT)
    monkeypatch.setattr(run, "compile_cubin", refuse)
    assert called(monkeypatch) == 1
    assert capsys.readouterr().err == "nvcc does not compile the kernel:\nso it says\n"
    assert not list(few.iterdir())


def test_without_matplotlib_there_is_a_sentence(
    few: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "lower", lambda _: LOWERED)
    monkeypatch.setattr(run, "check", lambda *_: RIGHT)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert called(monkeypatch) == 0
    assert "no plot without matplotlib: pip install matplotlib" in capsys.readouterr().out
    assert not list(few.iterdir())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--sms", "3"], "--sms takes 2 to 148, an even number"),
        (["--sms", "0"], "--sms takes 2 to 148"),
        (["--sms", "150"], "--sms takes 2 to 148"),
        (["--json", "x", "--svg", "x"], "--json and --svg are both x"),
        (["--latency", "-1"], "--latency takes a number from 0 to 1000: -1.0"),
        (["--latency", "nan"], "--latency takes a number from 0 to 1000: nan"),
    ],
)
def test_a_wrong_call_is_exit_2(
    few: Path, arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    with pytest.raises(SystemExit) as left:
        called(monkeypatch, *arguments)
    assert left.value.code == 2
    assert said in capsys.readouterr().err


def test_the_plot_is_the_same_text_every_time_and_names_every_step() -> None:
    text = plot.svg(STEPS, 4).decode()
    assert text == plot.svg(STEPS, 4).decode()
    words = "".join(ElementTree.fromstring(text).itertext())
    for name in ("v1", "v2, v3, v4", "v5, v6", "v7", "v8", "v9", "v10"):
        assert name in words
    assert "dc:date" not in text


def test_the_readme_shows_the_table_of_the_run() -> None:
    shown = (FOLDER / "README.md").read_text()
    assert run.HEAD in shown
    for step in STEPS:
        row = run.Row(step, RIGHT, replace(LOWERED, threads=0), Cubin(b"", 0, 0, 0, 0), 4.0).text()
        line = next(x for x in shown.splitlines() if x.startswith(f"{step.name:<5}{step.new}"))
        # Registers are the compiler's, threads and bytes the tests' of lowering.
        assert line[:34] == row[:34]
        assert line[60:] == row[60:]


def test_a_row_without_numbers_is_a_mistake() -> None:
    assert not replace(RIGHT, worst=float(np.nan)).right
