"""README.md has the code of the steps and the numbers of the model: some of these, each time."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import indent

import pytest

from examples.attention.ladder import CHIPS, FULL, NAMES, ladder
from examples.attention.predict import predict
from tests.cases import drawn

FOLDER = Path(__file__).parents[3] / "examples" / "attention"
README = (FOLDER / "README.md").read_text()
QUICK = [(arch, name) for arch in CHIPS for name in ("online", "pipelined", "skewed", "masked")]
"""Those that take the profiler some seconds."""


def row(arch: str, name: str) -> list[str]:
    """The cells of a step of a chip that are one word each, the last ones."""
    table = README.partition(f"({arch}, ")[2].partition("```")[0]
    (line,) = (line for line in table.splitlines() if line.startswith(f"{name} "))
    return line.split()


@pytest.mark.thorough
@pytest.mark.parametrize(("arch", "name"), drawn(QUICK, 1))
def test_a_row_says_what_the_model_says(arch: str, name: str) -> None:
    step = next(step for step in ladder(arch) if step.name == name)
    found, cells = predict(step, FULL), row(arch, name)
    expected = [f"{found.microseconds:,.1f}", f"{found.tflops:.1f}", f"{found.work:.2f}"]
    first = cells.index(expected[0])
    assert cells[first : first + 3] == expected
    assert cells[-5:-2] == [f"{found.registers}", f"{found.spilled}", f"{found.lds_bytes}"]
    assert cells[-2:] == [f"{found.far_bytes / 1e6:,.0f}", f"{found.between_bytes / 1e6:,.0f}"]
    assert found.limit.split()[0] in cells


def test_each_chip_has_a_row_for_each_step() -> None:
    assert all(row(arch, name) for arch in CHIPS for name in NAMES)


def test_the_steps_are_told_in_their_order_with_code_of_their_own() -> None:
    told = re.findall(
        r"^\*\*(\w+)\.\*\*.*?^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE
    )
    assert [name for name, _ in told] == list(NAMES)
    for name, code in told:
        shared = "key_loop" if name == "pipelined" else name
        text = (FOLDER / f"{shared}.py").read_text()
        assert any(indent(code, " " * 4 * depth) in text for depth in range(4)), name
