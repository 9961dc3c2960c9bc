"""Kernels that others have measured (`benchmarks.measured`): they compute products, and the cycle
model says of them what traces of chips do.

ROCm/gfx950-gluon-tutorials has the traces: docs/mfma_efficiency.md that of two stages, and
kernels/gemm/gfx942/inter_wave/README.md the counters of the LDS.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mfmadsl
from benchmarks.measured.kernel import TILE, compile_all, launch
from mfmadsl.emulator.profiler import Profile

STAGES, COLLIDING = "two-stages-gfx950-f16", "colliding-gfx942-f16"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("measured")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(path / "cache"))
        compile_all(path, (STAGES, COLLIDING))
    return path


def launched(folder: Path, name: str, a: Any, b: Any) -> tuple[list[Any], dict[str, Any]]:
    """What `emulate` and `profile` take; C is the third argument."""
    return launch(folder, name, a, b, np.zeros((len(a), len(b)), a.dtype))


def profiled(folder: Path, name: str, shape: tuple[int, int, int]) -> Profile:
    m, n, k = shape
    values, options = launched(folder, name, np.ones((m, k), "f2"), np.ones((n, k), "f2"))
    return mfmadsl.profile(*values, **options)


def test_they_multiply(folder: Path) -> None:
    """Eight tiles, one for each die; the integers are exact in float16."""
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-3, 4, (rows, 128)).astype("f2") for rows in (2 * TILE, 4 * TILE))
    values, options = launched(folder, COLLIDING, a, b)
    mfmadsl.emulate(*values, **options)
    assert np.array_equal(values[1][2], a.astype("f8") @ b.astype("f8").T)


def test_an_iteration_of_two_stages_takes_what_a_trace_shows(folder: Path) -> None:
    """3593 cycles, of which 128 matrix instructions of a wave take 2048, or 57 %."""
    timing = profiled(folder, STAGES, (TILE, TILE, 8 * 64)).timing
    begun = [e.issued for e in timing.events if (e.unit, e.wave) == ("matrix", 0)][::128]
    assert begun[6] - begun[5] == pytest.approx(3593, rel=0.05)


def test_colliding_reads_of_the_lds_take_what_a_counter_shows(folder: Path) -> None:
    """14.00 cycles of each instruction of the LDS, where 8.00 would do."""
    profile = profiled(folder, COLLIDING, (8 * TILE, TILE, 128))
    assert profile.loop is not None
    first, last = profile.loop.lines
    inside = [access for access in profile.lds if first <= access.line <= last]
    times = sum(access.times for access in inside)
    assert sum(access.cycles * access.times for access in inside) / times == 14
    assert sum(access.least_cycles * access.times for access in inside) / times == 8
