"""How far a launch has come: workgroups that run are counted by what they have executed."""

from __future__ import annotations

import pytest

from mfmadsl.emulator.machine import advance as module
from mfmadsl.emulator.machine.advance import Advance


def test_parts_of_what_runs_are_counted_once_it_is_known_how_long_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, executed, told = [0.0], [0], list[int]()
    monkeypatch.setattr(module, "monotonic", lambda: clock[0])

    def tell(done: int, total: int) -> None:
        assert total == 11
        told.append(done)

    advance = Advance(tell, 11, lambda: executed[0])

    def ticks(instructions: int, seconds: float) -> None:
        executed[0], clock[0] = instructions, clock[0] + seconds
        advance.tick()

    advance.starts(1)
    ticks(40, 0.1)  # too soon
    ticks(60, 0.5)  # of how many, nobody knows
    executed[0] = 100
    advance.starts(10)
    ticks(250, 1)
    ticks(350, 0.2)  # too soon
    ticks(600, 1)
    ticks(9999, 1)  # more than the first one has executed, and not ended
    assert told == [0, 0, 1, 2, 6, 10]
