"""Whatever goes wrong in a kernel is told in the same words with native code and without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.native import lines, stretches
from mfmadsl.emulator.native.heat import Heat
from mfmadsl.emulator.sanitizer import sanitize
from tests.conftest import ALL
from tests.emulator.sanitizer.random_kernels import WORDS, random_kernel

WAYS: tuple[dict[str, Any], ...] = (
    {"keep_going": True},
    {},
    {"keep_going": True, "order": "random"},
    {"keep_going": True, "unwritten": [1]},
)


def told(text: str, monkeypatch: pytest.MonkeyPatch, native: bool, way: dict[str, Any]) -> Any:
    """The faults with their counts, what was executed, and what lies in memory afterwards."""
    monkeypatch.setenv("MFMADSL_NATIVE", str(int(native)))
    arrays = [np.arange(WORDS, dtype=np.uint32), np.zeros(WORDS, np.uint32)]
    found: Any
    try:
        findings = sanitize(text, arrays, (3,), (128,), budget=2000, **way)
        found = findings.faults, findings.counts, findings.run.instructions
    except EmulationError as error:
        found = error.fault
    return found, [array.tobytes() for array in arrays]


@settings(max_examples=200 if ALL else 12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.sampled_from(WAYS))
def test_the_same_is_told(seed: int, way: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(lines, "is_considered", lambda visits, waves: True)
        monkeypatch.setattr(Heat, "is_worth", lambda *_: True)
        text = random_kernel(seed)
        assert told(text, monkeypatch, True, way) == told(text, monkeypatch, False, way)


def test_accesses_are_native(monkeypatch: pytest.MonkeyPatch) -> None:
    """A correct kernel runs as native code from its first instruction to its last."""
    from tests.emulator.sanitizer.test_sanitize import EXCHANGE
    from tests.emulator.waves import kernel

    monkeypatch.setattr(lines, "is_considered", lambda visits, waves: True)
    monkeypatch.setattr(Heat, "is_worth", lambda *_: True)
    executed: list[int] = []
    real = stretches.Stretches.run_watched

    def counted(*arguments: Any, **more: Any) -> int:
        executed.append(real(*arguments, **more))
        return executed[-1]

    monkeypatch.setattr(stretches.Stretches, "run_watched", counted)
    text, result = kernel(EXCHANGE, lds=1024), np.zeros(256, np.uint32)
    found = sanitize(text, [result], (1,), (256,), keep_going=True)
    assert found.faults == ()
    assert (result == (np.arange(256) + 64) % 256).all()
    assert sum(executed) == found.run.total // 4 - 2  # but for the barrier and the end
