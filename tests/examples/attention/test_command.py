"""The command's options, files and exit codes, at small sizes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tvm.s_tir import Schedule

import mfmadsl
from examples.attention import plot
from examples.attention.command import main
from examples.attention.ladder import ladder
from examples.attention.measure import measure
from examples.attention.size import Size
from examples.attention.step import Step
from tests.examples.commands import check_needs_matplotlib, check_unwritable, check_wrong_call

SHORT = ["--size", "2x140x100x40", "--jobs", "1"]
RIGHT = next(step for step in ladder("gfx942") if step.name == "online")


def sharp(size: Size, arch: str) -> Schedule:
    """Attention to scores that are twice as large."""
    other = mfmadsl.attention(
        1, size.heads, size.queries, size.keys, size.depth, scale=2 * size.depth**-0.5
    )
    return mfmadsl.attention_schedule(other, arch)


WRONG = Step("sharp", "twice the scores", "gfx942", False, sharp)


@pytest.mark.thorough
def test_a_wrong_attention_is_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*SHORT, "--json", "found.json"], [RIGHT, WRONG]) == 1
    said = capsys.readouterr()
    assert "1 of 2 steps agree with NumPy" in said.out
    assert "error: sharp on gfx942: " in said.err
    assert "elements are wrong, the first of them O[0, 0, 0, " in said.err
    (chip,) = json.loads((tmp_path / "found.json").read_text())["chips"]
    assert [step["right"] for step in chip["steps"]] == [True, False]


def test_what_is_refused_is_a_sentence_and_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--size", "1x128x128x1024", "--jobs", "1"], [RIGHT]) == 1
    said = capsys.readouterr().err
    assert said.startswith(
        "error: tiling.keys: tiles of 32 keys and lines of 128 results take 131072 bytes"
    )
    assert len(said.splitlines()) == 1


@pytest.mark.thorough
def test_the_same_plot_each_time() -> None:
    small = Size(1, 130, 70, 16)
    measured = measure([RIGHT], small, small=small)
    assert plot.svg([measured]) == plot.svg([measured])


@pytest.mark.thorough
def test_two_processes_say_what_one_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["--arch", "gfx942", "--step", "skewed", "--step", "online"]
    said = []
    for jobs in ("1", "2"):
        assert main([*asked, "--size", "2x140x100x40", "--jobs", jobs]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert said[0].index("online") < said[0].index("skewed")


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (["--size", "large"], "`large` is no size such as 64x2048x2048x128"),
        (["--size", "2048x2048x128"], "`2048x2048x128` is no size such as 64x2048x2048x128"),
        (["--size", "1x128x0x128"], "`1x128x0x128` is no size such as 64x2048x2048x128"),
        (["--step", "fastest"], "invalid choice: 'fastest'"),
        (["--arch", "gfx90a"], "invalid choice: 'gfx90a'"),
        (["--jobs", "0"], "invalid choice"),
        (["--full"], "unrecognized arguments: --full"),
    ],
)
def test_a_wrong_call_is_exit_code_2(
    asked: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check_wrong_call(main, asked, sentence, capsys)


def test_a_file_that_cannot_be_written_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check_unwritable(lambda asked: main(asked, [RIGHT]), SHORT, tmp_path, capsys)


@pytest.mark.thorough
def test_without_matplotlib_it_says_so_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(SHORT, [RIGHT]) == 0
    said = capsys.readouterr().out
    assert "no plot: it takes matplotlib (pip install" in said
    assert "1 of 1 steps agree with NumPy" in said
    assert not (tmp_path / "attention.svg").exists()


def test_the_plot_needs_matplotlib_only_when_it_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    check_needs_matplotlib(lambda: plot.svg([]), monkeypatch)
