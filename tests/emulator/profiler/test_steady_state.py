"""Turns that are not gone through one by one change nothing of what the model says."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest

from mfmadsl.backend import build
from mfmadsl.emulator.profiler import profile
from mfmadsl.emulator.profiler.record import Trace
from mfmadsl.emulator.profiler.steady_state import FAR, SteadyState, WaveState
from mfmadsl.emulator.profiler.timing import Timing, simulate
from mfmadsl.model.numpy_type import numpy_type
from mfmadsl.schedule import gemm_schedule, matmul


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each simulation that a profile takes is that which goes through all turns."""
    found: list[bool] = []

    def both(
        chip: Any, program: Any, operations: Any, traces: Any, per_group: int, loop_end: int | None,
        path: Any = None,
    ) -> Timing:  # fmt: skip
        most = chip, program, operations, traces, per_group
        quick = simulate(*most, loop_end, path)
        found.append(quick == simulate(*most, None, path))
        return quick

    for name in ("profile", "work"):
        monkeypatch.setattr(sys.modules[f"mfmadsl.emulator.profiler.{name}"], "simulate", both)
    return found


@pytest.mark.parametrize(
    ("arch", "dtype", "shape", "full"),
    [
        ("gfx942", "float16", (256, 128, 2048), False),
        ("gfx942", "int8", (128, 256, 4096), True),
        ("gfx950", "float16", (256, 256, 2048), False),
        ("gfx908", "float32", (99, 77, 333), True),
        ("gfx90a", "float64", (64, 64, 512), False),
    ],
)
def test_the_model_says_the_same(
    arch: str, dtype: str, shape: tuple[int, int, int], full: bool, compared: list[bool]
) -> None:
    m, n, k = shape
    out = {"int8": "int32", "float64": "float64"}.get(dtype, "float32")
    kernel = build(gemm_schedule(matmul(m, n, k, dtype, out, True), arch=arch), arch)
    operands = [np.ones((rows, k), numpy_type(dtype)) for rows in (m, n)]
    profile(kernel, [*operands, np.zeros((m, n), out)], full=full)
    assert len(compared) >= 2
    assert all(compared)


def moments(trace: Trace, cycles: int, turns: int) -> tuple[SteadyState, WaveState, list[Any]]:
    """What a wave finds at the end of each of its first turns, of two steps that take so long."""
    steady, wave, found = SteadyState(loop_end=7), WaveState(0, 0, 0, trace), []
    for turn in range(turns):
        wave.at = 2 * turn + 1
        wave.ready = turn * cycles
        counted = [Counter({"valu": 3 * turn})]
        found.append(steady.repetition(turn * cycles, [wave], (), (5 * turn,), counted))
    return steady, wave, found


def test_what_recurs_is_repeated_as_often_as_the_wave_does_it() -> None:
    trace = Trace(0, [6, 7] * 10 + [8], [0, 0] * 10 + [0])
    _, wave, (first, second) = moments(trace, 40, 2)
    assert first is None
    assert (second.times, second.cycles, second.first) == (8, 40, (0,))
    assert second.lengths == {0: 2}
    assert second.counted == (Counter({"valu": 3}),)
    second.shift([wave], 8)
    assert wave.at == 3 + 8 * 2
    assert wave.trace.places[wave.at :] == [7, 8]
    assert wave.ready == 40 + 8 * 40


def test_other_costs_end_the_repetition() -> None:
    trace = Trace(0, [6, 7] * 10, [1, 0] * 6 + [2, 0] * 4)
    _, wave, (_, second) = moments(trace, 40, 2)
    assert second.times == 4
    second.shift([wave], 4)
    assert wave.trace.costs[wave.at + 1] == 2


def test_a_wave_in_another_state_does_not_repeat() -> None:
    steady, wave = SteadyState(7), WaveState(0, 0, 0, Trace(0, [7] * 9, [0] * 9))
    assert steady.repetition(0, [wave], (), (), []) is None
    wave.at, wave.vmcnt = 1, type(wave.vmcnt)([90])
    assert steady.repetition(40, [wave], (), (), []) is None
    wave.at = 2
    assert steady.repetition(80, [wave], ("other",), (), []) is None


def test_times_that_have_passed_do_not_count() -> None:
    early = WaveState(0, 0, 0, Trace(0, [7], [0]), ready=40, last_result=3)
    late = WaveState(0, 0, 0, Trace(0, [7], [0]), ready=90, results={("a", 1): 95})
    assert early.relative(50) == late.relative(100)
    assert early.relative(39) != late.relative(100)


def test_waves_that_wait_for_ever_still_do_later() -> None:
    wave = WaveState(0, 0, 0, Trace(0, [7] * 9, [0] * 9), blocked=FAR)
    wave.shift(2, 100)
    assert (wave.at, wave.ready, wave.blocked) == (2, 100, FAR)
