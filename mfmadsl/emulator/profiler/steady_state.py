"""Letting time pass at once where waves do again what they have done.

A loop soon goes on in the same way, iteration after iteration: when all that the model knows of the
waves is as it was a while ago, but for the time, and the waves will execute the same once more, so
will the model do. The result is that of going through all iterations.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.profiler.record import Trace

FAR = 1 << 60
"""A time that never comes."""


@dataclass
class WaveState:
    """What the model knows of a wave; times are absolute. `blocked` is until when it need not be
    asked again, for `reason`."""

    number: int
    group: int
    simd: int
    trace: Trace
    at: int = 0
    ready: int = 0
    priority: int = 0
    blocked: int = 0
    reason: str = ""
    results: dict[tuple[str, int], int] = field(default_factory=dict)
    last_result: int = 0
    vmcnt: deque[int] = field(default_factory=deque)
    lgkmcnt: deque[int] = field(default_factory=deque)
    waiting: bool = False

    @property
    def ended(self) -> bool:
        """Whether the wave has come to its end."""
        return self.at >= len(self.trace.places)

    def relative(self, now: int) -> Hashable:
        """All of it that counts for what comes, with times from now on."""
        return (
            self.number, self.trace.places[self.at], max(0, self.ready - now), self.priority,
            FAR if self.blocked == FAR else max(0, self.blocked - now), self.reason, self.waiting,
            tuple(sorted((r, t - now) for r, t in self.results.items() if t > now)),
            tuple(t - now for t in self.vmcnt if t > now),
            tuple(t - now for t in self.lgkmcnt if t > now),
        )  # fmt: skip

    def shift(self, steps: int, cycles: int) -> None:
        """Be so many steps and cycles later."""
        self.at += steps
        self.ready += cycles
        self.last_result += cycles
        if self.blocked != FAR:
            self.blocked += cycles
        self.results = {register: time + cycles for register, time in self.results.items()}
        self.vmcnt = deque(time + cycles for time in self.vmcnt)
        self.lgkmcnt = deque(time + cycles for time in self.lgkmcnt)


@dataclass(frozen=True)
class _Moment:
    now: int
    steps: Mapping[int, int]
    reached: tuple[int, ...]
    counted: tuple[Counter[Any], ...]


@dataclass(frozen=True)
class Repetition:
    """What happened in the last `cycles`, and up to how many `times` waves will do it again.

    `lengths` are the steps of each wave by its number, `first` what was reached when it began, and
    `counted` what was counted meanwhile, by each of the counters.
    """

    times: int
    cycles: int
    lengths: Mapping[int, int]
    first: tuple[int, ...]
    counted: tuple[Counter[Any], ...]

    def shift(self, waves: Sequence[WaveState], times: int) -> None:
        """Let the waves have done it so many times more."""
        for wave in waves:
            wave.shift(times * self.lengths[wave.number], times * self.cycles)


class SteadyState:
    """Compares moments at which the first wave is at the end of an iteration of the loop."""

    def __init__(self, loop_end: int | None) -> None:
        self._loop_end = loop_end
        self._seen: dict[Hashable, _Moment] = {}
        self._last = -1

    def comes_to(self, waves: Sequence[WaveState]) -> bool:
        """Whether this is such a moment, which `repetition` has not been asked of yet."""
        first = waves[0]
        return first.at != self._last and first.trace.places[first.at] == self._loop_end

    def repetition(
        self,
        now: int,
        waves: Sequence[WaveState],
        shared: Hashable,
        reached: tuple[int, ...],
        counters: Sequence[Counter[Any]],
    ) -> Repetition | None:
        """What may be repeated from now on, a moment that the loop has come to.

        `waves` are those that run, in their order; `shared` is what else counts for what comes,
        with times from now on, and `reached` how far lists have grown of what happens.
        """
        self._last = waves[0].at
        state = (shared, tuple(wave.relative(now) for wave in waves))
        steps = {wave.number: wave.at for wave in waves}
        counted = tuple(Counter(counter) for counter in counters)
        before = self._seen.get(state)
        self._seen[state] = _Moment(now, steps, reached, counted)
        if before is None:
            return None
        lengths = {number: at - before.steps[number] for number, at in steps.items()}
        times = min(_repeats(w.trace, before.steps[w.number], lengths[w.number]) for w in waves)
        if not times:
            return None
        self._seen.clear()
        new = tuple(late - early for late, early in zip(counted, before.counted, strict=True))
        return Repetition(times, now - before.now, lengths, before.reached, new)


def _repeats(trace: Trace, start: int, length: int) -> int:
    """How often a wave goes on to execute what it did in `length` steps from `start` on."""
    if not length:
        return FAR
    least = FAR
    for steps in (trace.places, trace.costs):
        array: npt.NDArray[np.int64] = np.asarray(steps[start:], np.int64)
        differ = np.flatnonzero(array[length:] != array[:-length])
        least = min(least, (differ[0] if len(differ) else len(array) - length) // length)
    return int(least)
