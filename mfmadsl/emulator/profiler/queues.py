"""What holds requests on their way to the LDS and to memory: a wave that finds no room waits.

Requests of waves go into a queue when they are issued and leave it when the LDS, or the vector L1,
takes them up. The vector L1 takes up a request once it has lines for what it fetches: those of
requests that are under way are in use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from heapq import heappop, heappush

from mfmadsl.emulator.profiler.cost import SLOT


class RequestQueue:
    """Requests that are served in order, of which so many have room.

    Waves that find none wait in a line, so that SIMDs take turns.
    """

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._leave: deque[int] = deque()
        self._line: list[int] = []

    def room(self, now: int, wave: int) -> int:
        """When a wave may let its request enter: now, or a time before which it may not."""
        while self._leave and self._leave[0] <= now:
            self._leave.popleft()
        place = self._line.index(wave) if wave in self._line else len(self._line)
        missing = place - (self._entries - len(self._leave))
        if missing < 0:
            return now
        if place == len(self._line):
            self._line.append(wave)
        if not self._leave:
            return now + SLOT
        return self._leave[min(missing, len(self._leave) - 1)]

    def enter(self, wave: int, leaves: int) -> None:
        """Take in a request of a wave that leaves at some time, after those before it."""
        if wave in self._line:
            self._line.remove(wave)
        self._leave.append(leaves)

    def ahead(self, now: int) -> Hashable:
        """What is in it, in times from now on, and who waits."""
        return tuple(time - now for time in self._leave if time > now), tuple(self._line)

    def shift(self, cycles: int) -> None:
        """Be so many cycles later."""
        self._leave = deque(time + cycles for time in self._leave)


class LinesInFlight:
    """The lines of the vector L1 cache, in bytes, that wait for what they are to hold."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._used = 0
        self._until: list[tuple[int, int]] = []

    def room(self, now: int, size: int) -> int:
        """When so many bytes may be asked for. More than there are may be when none is in use."""
        while self._until and (self._until[0][0] <= now or self._used + size > self._most):
            until, freed = heappop(self._until)
            self._used -= freed
            now = max(now, until)
        return now

    def take(self, until: int, size: int) -> None:
        """Use so many bytes until they have come."""
        if size:
            heappush(self._until, (until, size))
            self._used += size

    def ahead(self, now: int) -> Hashable:
        """What is in use, in times from now on."""
        return tuple(sorted((until - now, size) for until, size in self._until if until > now))

    def shift(self, cycles: int) -> None:
        """Be so many cycles later."""
        self._until = [(until + cycles, size) for until, size in self._until]
