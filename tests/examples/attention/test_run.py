"""The whole command, once: its tables are README.md's, and each step is faster than the one before
but where the mask comes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from examples.attention.ladder import CHIPS, FULL, NAMES
from tests.cases import drawn

# One process keeps the run, which takes minutes; the steps' numbers are tested by themselves.
pytestmark = [pytest.mark.xdist_group("attention"), pytest.mark.thorough]

FOLDER = Path(__file__).parents[3] / "examples" / "attention"
README = (FOLDER / "README.md").read_text()
BLOCKS = re.findall(r"^```\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
RAN = drawn(CHIPS, 1)
ASKED = [word for arch in RAN for word in ("--arch", arch)]
STEPS = len(NAMES) * len(RAN)


@dataclass(frozen=True)
class Run:
    """What a run of all steps printed and wrote."""

    code: int
    output: str
    found: dict[str, Any]
    picture: str


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """In a process and a folder of its own, as people call it."""
    folder = tmp_path_factory.mktemp("attention")
    done = subprocess.run(
        [sys.executable, str(FOLDER / "run.py"), "--json", "found.json", *ASKED],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    told = done.stderr.splitlines()
    assert len(told) == STEPS
    assert all(re.fullmatch(r" *\d+ s  \w+, gfx\w+", line) for line in told), done.stderr
    found = json.loads((folder / "found.json").read_text())
    return Run(done.returncode, done.stdout, found, (folder / "attention.svg").read_text())


def predictions(run: Run, arch: str) -> dict[str, dict[str, Any]]:
    """What is predicted of a chip's steps, in their order."""
    chip = next(each for each in run.found["chips"] if each["arch"] == arch)
    return {step["name"]: step["prediction"] for step in chip["steps"]}


def test_all_numbers_are_right(run: Run) -> None:
    assert run.code == 0
    assert f"numbers     {STEPS} of {STEPS} steps agree with NumPy in float64" in run.output
    steps = [step for chip in run.found["chips"] for step in chip["steps"]]
    assert len(steps) == STEPS
    assert all(step["right"] is True and step["wrong"] is None for step in steps)


@pytest.mark.parametrize("arch", RAN)
def test_readme_has_the_table_of_this_run(run: Run, arch: str) -> None:
    table = next(part for part in run.output.split("\n\n") if f"({arch}, " in part)
    assert table.count("\n") == len(NAMES) + 1
    assert table + "\n" in BLOCKS


@pytest.mark.parametrize("arch", RAN)
def test_each_step_is_faster_than_the_one_before_but_the_one_that_masks(
    run: Run, arch: str
) -> None:
    for (_, before), (name, after) in pairwise(predictions(run, arch).items()):
        assert (after["microseconds"] < before["microseconds"]) == (name != "masked"), name


@pytest.mark.parametrize("arch", RAN)
def test_what_readme_says_of_the_steps(run: Run, arch: str) -> None:
    found = predictions(run, arch)
    naive = found["naive"]
    assert naive["limit"] == "HBM"
    assert naive["kernels"] == 3
    assert naive["between_bytes"] == 6 * FULL.heads * FULL.queries * FULL.keys
    assert all(each["far_bytes"] < naive["far_bytes"] / 2 for each in list(found.values())[1:])
    work = {name: each["work"] for name, each in found.items()}
    assert work["fused"] == pytest.approx(1.5)
    assert 2 < work["masked"] < 2.1
    assert work["skipped"] == work["causal_order"] == pytest.approx(1.08, abs=0.005)
    assert all(each["spilled"] == 0 for each in found.values())


@pytest.mark.parametrize("arch", RAN)
def test_rates_and_times_are_of_the_same_attention(run: Run, arch: str) -> None:
    for name, each in predictions(run, arch).items():
        causal = NAMES.index(name) >= NAMES.index("masked")
        operations = FULL.operations(causal)
        assert each["tflops"] == pytest.approx(operations / each["microseconds"] / 1e6)


def test_the_plot_has_two_lines_for_each_chip_and_its_words_as_text(run: Run) -> None:
    for product, arch in (("MI300X", "gfx942"), ("MI355X", "gfx950")):
        for text in (f"{product} ({arch})", f"{product} ({arch}), causal"):
            assert (f">{text}</text>" in run.picture) == (arch in RAN)
    assert ">causal_order</text>" in run.picture
