"""How far a launch has come, told while its workgroups run."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

_INTERVAL = 0.5  # seconds


class Advance:
    """Tells how many of `total` workgroups are done, counted by what their waves have executed.

    `executed` says how many instructions all waves have executed, repetitions counted. Workgroups
    that run are counted in part once others have ended, and have shown how much one executes.
    """

    def __init__(
        self, tell: Callable[[int, int], None], total: int, executed: Callable[[], int]
    ) -> None:
        self._tell, self._total, self._executed = tell, total, executed
        self._done = self._running = self._before = 0
        self._told = 0.0

    def starts(self, groups: int) -> None:
        """So many workgroups are about to run, and those that ran before have ended."""
        self._done += self._running
        self._running, self._before = groups, self._executed()
        self._say(self._done)

    def tick(self) -> None:
        """Tell, if it is some time ago."""
        if monotonic() - self._told < _INTERVAL:
            return
        each = self._before / self._done if self._done else 0
        now = (self._executed() - self._before) / each if each else 0
        # Those that execute more than others did have not ended.
        self._say(self._done + min(int(now), self._running - 1))

    def _say(self, done: int) -> None:
        self._told = monotonic()
        self._tell(done, self._total)
