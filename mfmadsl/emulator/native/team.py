"""Threads that execute steps together, on some waves each: see `team_code`.

They help one thread at a time; whoever comes meanwhile executes its steps alone. A helper that has
had nothing to do for some time sleeps until there is more.
"""

from __future__ import annotations

import atexit
import os
import threading
from time import perf_counter_ns, thread_time_ns

import numpy as np

from mfmadsl.emulator.native.library import Library, library
from mfmadsl.emulator.native.state import State
from mfmadsl.emulator.native.stretch import Stretch
from mfmadsl.emulator.native.team_code import HELPED_WORD, OWN_WORDS, SHARED_WORDS, STOP_WORD

_CROWDED, _USUAL, _RESTS = 1.3, 20_000, 100
"""Where a stretch takes so many times as long as its leader runs, and some nanoseconds more, other
programs have the processors, and so many stretches are left to the leader."""


class _Helper:
    """A thread that helps."""

    def __init__(self, team: Team) -> None:
        self._team = team
        self._own = np.zeros(OWN_WORDS, np.int64)
        self._sleeps = threading.Lock()
        self._sleeps.acquire()
        self.is_awake = True
        self._thread = threading.Thread(target=self._run, name="mfmadsl-emulator", daemon=True)
        self._thread.start()

    @property
    def helped(self) -> int:
        """How many blocks of waves it has executed."""
        return int(self._own[HELPED_WORD])

    def wake(self) -> None:
        """Have it look for work. Its leader calls this, and nobody else at that time."""
        self.is_awake = True
        self._sleeps.release()

    def join(self) -> None:
        """Wait until it has ended."""
        if not self.is_awake:
            self.wake()
        self._thread.join()

    def _run(self) -> None:
        team, own = self._team, self._own.ctypes.data
        while not team.has_ended:
            team.help(team.address, own)
            self.is_awake = False
            if not team.has_ended:  # asked again: who ends it looks whether this one is awake
                self._sleeps.acquire()


class Team:
    """The helpers of this process, and what threads share."""

    def __init__(self, helpers: int, library: Library) -> None:
        self._shared = np.zeros(SHARED_WORDS, np.int64)
        self.address = self._shared.ctypes.data
        self._lead, self.help = library.team()
        self._is_led = threading.Lock()
        self._rests = 0  # stretches that the leader executes alone, since there is other work
        self._helpers = [_Helper(self) for _ in range(helpers)]

    @property
    def has_ended(self) -> bool:
        """Whether nobody is to help any more."""
        return bool(self._shared[STOP_WORD])

    @property
    def helped(self) -> int:
        """How many blocks of waves others than the leader have executed."""
        return sum(helper.helped for helper in self._helpers)

    def end(self) -> None:
        """Have all helpers end, before what they execute is taken away."""
        self._shared[STOP_WORD] = 1
        for helper in self._helpers:
            helper.join()
        self._helpers = []

    def execute(self, state: State, stretch: Stretch, steps: int) -> int:
        """Execute so many steps of a stretch on the waves of a state, and say how many were: as its
        driver would, which does so where the helpers are another's."""
        bounds = state.blocks
        if self._rests > 0:
            self._rests -= 1
            return stretch.driver(state.address, stretch.address, steps)
        if len(bounds) <= 2 or not self._is_led.acquire(blocking=False):
            return stretch.driver(state.address, stretch.address, steps)
        try:
            began, used = perf_counter_ns(), thread_time_ns()
            for helper in self._helpers:
                if not helper.is_awake:
                    helper.wake()
            done: int = self._lead(
                state.address, stretch.address, steps, bounds.ctypes.data, len(bounds) - 1,
                self.address,
            )  # fmt: skip
            if perf_counter_ns() - began > _CROWDED * (thread_time_ns() - used) + _USUAL:
                self._rests = _RESTS
            return done
        finally:
            self._is_led.release()


_TEAMS: dict[int, Team] = {}
"""Those of this process, by how many helpers they have: as many as were ever wanted."""
_MAKES = [threading.Lock()]


def team_of(helpers: int) -> Team:
    """The team with so many helpers."""
    if helpers not in _TEAMS:
        with _MAKES[0]:
            if helpers not in _TEAMS:
                _TEAMS[helpers] = Team(helpers, library())
    return _TEAMS[helpers]


def _end() -> None:
    for team in _TEAMS.values():
        team.end()


def _forget() -> None:
    """A process that was forked has none of the threads."""
    _MAKES[0] = threading.Lock()
    _TEAMS.clear()


atexit.register(_end)
os.register_at_fork(after_in_child=_forget)
