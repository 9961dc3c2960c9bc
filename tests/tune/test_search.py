"""What becomes of a kernel that cannot be measured, and of those after it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import mfmadsl
from mfmadsl.backend import Kernel
from mfmadsl.emulator import EmulationError
from mfmadsl.error import MfmadslError
from mfmadsl.tune import Database, tune
from mfmadsl.tune.measure import Measure, MeasureError


@pytest.mark.parametrize(
    ("error", "measured"), [(EmulationError("of its own"), 2), (MeasureError("of all"), 0)]
)
def test_others_are_measured_unless_nothing_can_be(
    error: MfmadslError, measured: int, tmp_path: Path
) -> None:
    """The first kernel of three fails."""
    calls: list[str] = []

    def seconds(kernel: Kernel, _: Sequence[Any]) -> float:
        calls.append(kernel.symbol)
        if len(calls) == 1:
            raise error
        return 1e-6

    workload = mfmadsl.matmul(64, 64, 64, "float16", "float32")
    found = tune(workload, Database(tmp_path), trials=3, measure=Measure("a GPU", seconds))
    assert [trial.seconds for trial in found] == [1e-6] * measured + [None] * (3 - measured)
    assert {trial.failure for trial in found if trial.seconds is None} == {str(error)}
    assert len(calls) == 1 + measured
