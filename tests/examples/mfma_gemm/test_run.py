"""The whole command, once: its tables and listings are README.md's, and rates rise but where it
says so."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mfmadsl
from examples.mfma_gemm.command import listing
from examples.mfma_gemm.ladder import CHIPS, FULL, ladder
from tests.cases import drawn

# One process keeps the run, which takes a minute; the steps' numbers are tested by themselves.
pytestmark = [pytest.mark.xdist_group("mfma_gemm"), pytest.mark.thorough]

FOLDER = Path(__file__).parents[3] / "examples" / "mfma_gemm"
README = (FOLDER / "README.md").read_text()
FENCED = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
BLOCKS = [block for language, block in FENCED if not language]
RAN = drawn(CHIPS, 1)
ASKED = [word for arch in RAN for word in ("--arch", arch)]
STEPS = sum(len(ladder(arch)) for arch in RAN)
SLOWER = {
    "loads_in_flight", "fragments_ahead", "instruction_order", "transposing_reads", "persistent",
}  # fmt: skip
"""The steps that README.md says are no faster than the one before."""


@dataclass(frozen=True)
class Run:
    """What a run of all steps printed and wrote."""

    code: int
    output: str
    found: dict[str, Any]
    picture: bytes


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """In a process and a folder of its own, as people call it."""
    folder = tmp_path_factory.mktemp("mfma_gemm")
    done = subprocess.run(
        [sys.executable, str(FOLDER / "run.py"), "--json", "found.json", *ASKED],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    told = done.stderr.splitlines()
    assert len(told) == STEPS
    assert all(re.fullmatch(r" *\d+ s  \w+, gfx\w+", line) for line in told), done.stderr
    found = json.loads((folder / "found.json").read_text())
    return Run(done.returncode, done.stdout, found, (folder / "mfma_gemm.svg").read_bytes())


def predictions(run: Run, arch: str) -> dict[str, dict[str, Any]]:
    """What is predicted of a chip's steps, in their order."""
    chip = next(each for each in run.found["chips"] if each["arch"] == arch)
    return {step["name"]: step["prediction"] for step in chip["steps"]}


@pytest.mark.thorough
def test_all_numbers_are_right(run: Run) -> None:
    assert run.code == 0
    assert f"numbers     {STEPS} of {STEPS} steps agree with NumPy, bit by bit" in run.output
    steps = [step for chip in run.found["chips"] for step in chip["steps"]]
    assert len(steps) == STEPS
    assert all(step["right"] is True and step["wrong"] is None for step in steps)


@pytest.mark.parametrize("arch", RAN)
def test_readme_has_the_table_of_this_run(run: Run, arch: str) -> None:
    table = next(part for part in run.output.split("\n\n") if f"({arch}, " in part)
    assert table.count("\n") == len(ladder(arch)) + 1
    assert table + "\n" in BLOCKS


@pytest.mark.thorough
def test_readme_has_the_listings_of_this_code() -> None:
    told = [block for block in BLOCKS if block.startswith("; ")]
    names = []
    for block in told:
        name, arch = re.findall(r"^; (\w+) of \S+ on (\w+):", block)[0]
        steps = ladder(arch)
        number = next(n for n, step in enumerate(steps) if step.name == name)
        assert listing(steps[number - 1], steps[number], FULL[arch]) + "\n" == block
        names.append(name)
    every = [step.name for step in ladder("gfx950")]
    assert names == every[1:-1]  # the first has none before it, and the last one's is the same


@pytest.mark.parametrize("arch", RAN)
def test_rates_rise_but_where_readme_says_why_not(run: Run, arch: str) -> None:
    for (_, before), (name, after) in pairwise(predictions(run, arch).items()):
        if name not in SLOWER:
            assert after["rate"] > before["rate"], name
        else:
            assert f"- **`{name}`** " in README


@pytest.mark.parametrize("arch", RAN)
def test_what_readme_says_of_the_steps_that_are_not_faster(run: Run, arch: str) -> None:
    found = predictions(run, arch)
    loads, ahead = found["loads_in_flight"], found["fragments_ahead"]
    order, persistent = found["instruction_order"], found["persistent"]
    before = found["direct_loads" if arch == "gfx950" else "large_tile"]
    assert ahead["registers"] > loads["registers"] + 16  # a second set of fragments
    assert min(order["alone"], loads["alone"]) > ahead["alone"]
    assert 0.95 < persistent["rate"] / before["rate"] < 1.005
    assert persistent["far_bytes"] < before["far_bytes"] / 2
    if arch == "gfx942":
        assert loads["limit"] == before["limit"] == "power"
        assert loads["tflops"] < before["tflops"] < 654  # what AMD's best does of large ones
    else:
        assert (loads["resident"], ahead["resident"]) == (3, 2)
        turned, reads = found["large_tile"], found["transposing_reads"]
        assert reads["registers"] < turned["registers"]
        assert reads["alone"] == pytest.approx(turned["alone"], rel=0.01)


@pytest.mark.parametrize("arch", RAN)
def test_one_compute_unit_comes_near_all_that_there_is(run: Run, arch: str) -> None:
    most, share = {"gfx942": (1024, 0.85), "gfx950": (2048, 0.8)}[arch]
    found = predictions(run, arch)
    assert all(step["alone"] < most for step in found.values())
    assert found["persistent"]["alone"] > share * most


@pytest.mark.parametrize("arch", RAN)
def test_rates_and_times_are_of_the_same_product(run: Run, arch: str) -> None:
    for each in predictions(run, arch).values():
        size = each["size"]
        work = size["m"] * size["n"] * size["k"]
        assert each["tflops"] == pytest.approx(2 * work / each["microseconds"] / 1e6)
        assert each["spilled"] == 0


@pytest.mark.parametrize("arch", RAN)
def test_conflicts_end_with_the_swizzle(run: Run, arch: str) -> None:
    names = list(predictions(run, arch))
    conflicts = [each["conflicts"] for each in predictions(run, arch).values()]
    swizzled = names.index("swizzle")
    assert all(cycles > 0 for cycles in conflicts[:swizzled])
    assert not any(conflicts[swizzled:])


def test_the_plot_has_a_line_for_each_chip_and_its_words_as_text(run: Run) -> None:
    picture = run.picture.decode()
    for product, arch in (("MI300X", "gfx942"), ("MI355X", "gfx950")):
        assert (f"{product} ({arch})</text>" in picture) == (arch in RAN)
    assert ">instruction_order</text>" in picture


def test_a_large_product_by_the_last_step_is_the_kernel_that_is_chosen_by_itself() -> None:
    """The ladder ends where `gemm_tiling` begins."""
    for arch in CHIPS:
        step = ladder(arch)[-1]
        chosen = mfmadsl.gemm_tiling(step.workload(FULL[arch]), arch=arch)
        assert chosen.block == step.tiling.block
        assert chosen.overlap == step.tiling.overlap == "all"
        assert chosen.transposing_reads
        assert np.prod(chosen.waves) == 8
