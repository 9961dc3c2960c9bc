"""The README's table is that of the run: some steps, which take the profiler the least."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.gpu_gemm.ladder import CLASSIC, LADDER
from examples.gpu_gemm.predict import predict
from tests.cases import drawn

README = Path(__file__).parents[3] / "examples" / "gpu_gemm" / "README.md"
NAMED = {step.name: step for step in LADDER}


def row(name: str) -> list[str]:
    """The cells of a step at the classic size."""
    table = README.read_text().partition(f"{CLASSIC} (M x N x K)")[2]
    line = next(line for line in table.splitlines() if line.startswith(f"{name} "))
    return line.split()


@pytest.mark.thorough
@pytest.mark.parametrize("name", drawn(["coalesced", "shared_memory", "gemm", "gemm_f16"], 2))
def test_a_row_says_what_the_model_says(name: str) -> None:
    step = NAMED[name]
    found = predict(step.schedule(CLASSIC, "gfx942"), CLASSIC, "gfx942", step.dtype)
    cells = row(name)
    assert cells[1:3] == [f"{found.microseconds:,.1f}", f"{found.rate:.2f}"]
    assert cells[-2:] == [str(found.registers), str(found.lds_bytes)]
    assert found.limit.split()[0] in cells


def test_it_has_a_row_for_each_step() -> None:
    assert all(row(step.name) for step in LADDER)
