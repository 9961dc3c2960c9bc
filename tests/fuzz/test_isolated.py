"""The process that runs the cases tells what happened to them."""

from __future__ import annotations

import ctypes

import pytest

from tests.fuzz import isolated


def case(number: int) -> str | None:
    if number == 1:
        ctypes.string_at(0)
    if number == 2:
        while True:
            pass
    if number == 3:
        raise KeyError("lost")
    if number == 4:
        bytearray(1 << 50)
    return "is wrong" if number == 5 else None


def test_a_crash_a_hang_an_exception_and_a_mistake_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(isolated, "CPU_SECONDS", 0.3)
    crash, hang, lost, memory, wrong = isolated.failures(8, case, lambda number: f"f({number})")
    assert crash == "case 1, f(1): ended with SIGSEGV"
    assert hang == "case 2, f(2): ended with SIGPROF"
    assert "KeyError: 'lost'" in lost
    assert "MemoryError" in memory
    assert wrong == "case 5, f(5): is wrong"
