"""The README shows a run of all steps, whose numbers agree with each other, and lines of the code.

Times are of one machine and one hour: that they are kept cannot be asked, that they are of one run
of this ladder can.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from examples.cpu_matmul_exp import measure
from examples.cpu_matmul_exp.chain import FULL
from examples.cpu_matmul_exp.ladder import ladder
from examples.cpu_matmul_exp.measure import NUMPY
from examples.cpu_matmul_exp.tuned import BLOCKS, TILES

FOLDER = Path(measure.__file__).parent
README = (FOLDER / "README.md").read_text()
STEPS = [step.name for step in ladder()]
TABLES = {
    threads: {line.split()[0]: line.split()[1:] for line in rows.splitlines()[1:]}
    for threads, rows in re.findall(
        rf"^{FULL} \(M x K x N x P\), (\d+) threads? of a .*\n((?:\w.*\n)+)", README, re.MULTILINE
    )
}


def test_there_is_a_table_for_one_thread_and_for_all() -> None:
    assert list(TABLES) == ["1", "2"]


@pytest.mark.parametrize("threads", TABLES)
def test_a_table_has_a_row_for_each_step_in_order(threads: str) -> None:
    assert list(TABLES[threads]) == [*STEPS, NUMPY]


@pytest.mark.parametrize("threads", TABLES)
def test_what_follows_from_the_seconds_does(threads: str) -> None:
    rows = TABLES[threads]
    numpy = float(rows[NUMPY][0])
    before = None
    for name in STEPS:
        cells = rows[name]
        seconds, least, rate = float(cells[0]), float(cells[1]), float(cells[3])
        assert least <= seconds
        assert rate == pytest.approx(FULL.gigaflops / seconds, abs=0.06, rel=1e-3)
        assert float(cells[-2]) == pytest.approx(numpy / seconds, abs=1e-3)
        assert 0 < float(cells[-1]) < 1
        if before is not None:
            assert float(cells[4]) == pytest.approx(before / seconds, abs=0.01, rel=1e-3)
        before = seconds


def test_the_numbers_of_the_space_are_those_of_the_code() -> None:
    tiles = 1
    for choices in TILES:
        tiles *= len(choices)
    assert f"{len(BLOCKS) * tiles**2} schedules in all" in README


def test_every_line_of_code_that_is_shown_is_in_a_step() -> None:
    code = "".join((FOLDER / f"{name}.py").read_text() for name in STEPS)
    there = {line.strip() for line in code.splitlines()}
    shown = [
        line.strip()
        for block in re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ]
    assert len(shown) > 10
    assert not set(shown) - there


def test_every_step_is_told_of() -> None:
    assert re.findall(r"^\*\*(\w+)\.\*\*", README, re.MULTILINE) == STEPS
