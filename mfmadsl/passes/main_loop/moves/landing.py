"""Which loads straight into the LDS may start when, and how many may be under way at each wait.

A tile that is loaded in some pieces is free, piece by piece, when the last register step that reads
of the piece has done so in all waves, which they tell each other at a barrier. Loads complete in
order. So where pieces must have come, a wave waits until only so many are under way as have been
started after them: the memory is never waited for as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Landing:
    """The loads of an iteration, and the barriers of its register steps.

    A barrier of a step stands before its products, when its fragments have been read, and before
    the next one's are. `reads` are for each load the first and the last step that reads what it
    brings, and `stages` the places that each tile has: so many iterations ahead are loads started.
    """

    reads: tuple[tuple[int, int], ...]
    barriers: tuple[int, ...]
    stages: int

    @cached_property
    def started(self) -> dict[int, list[int]]:
        """The loads that start in each step from the first barrier on, in the order of their need.

        They are spread evenly over these steps, as far as their places are free: the vector L1 has
        lines for few of them at once, and what finds none holds up its wave.
        """
        first, last = self.barriers[0], self.barriers[-1]
        found: dict[int, list[int]] = {step: [] for step in range(first, last + 1)}
        freed = {
            n: min(b for b in self.barriers if b >= read[1]) for n, read in enumerate(self.reads)
        }
        for place, number in enumerate(sorted(freed, key=lambda n: (freed[n], self.reads[n], n))):
            even = first + place * len(found) // len(freed)
            found[max(freed[number], even)].append(number)
        return found

    @cached_property
    def order(self) -> list[int]:
        """All loads of an iteration, in the order in which they start."""
        return [number for numbers in self.started.values() for number in numbers]

    def under_way(self, iteration: int, step: int, last: int | None = None) -> int:
        """How many loads may be under way at the barrier of a step of an iteration.

        Iteration -1 stands for what is ahead of the first iteration. After iteration `last`, if it
        is known, nothing is loaded.
        """
        needed = self._needed(iteration, step)
        first = max(iteration, 0)  # what is needed is of this iteration, or of the next
        newest = first + self.stages - 1
        started = [(t, n) for t in range(first, newest + 1) for n in self.order]
        if iteration >= 0:
            before = [s for s in self.started if s < step]
            started += [(newest + 1, n) for s in before for n in self.started[s]]
        started = [(t, n) for t, n in started if last is None or t <= last]
        places = [place for place, load in enumerate(started) if load in needed]
        if places:
            return len(started) - 1 - max(places)
        earlier = first if last is None else min(first, last + 1)
        return len(started) + earlier * len(self.order)

    def _needed(self, iteration: int, step: int) -> set[tuple[int, int]]:
        """What is read between this barrier and the next one, as (iteration, load)."""
        later = [s for s in self.barriers if s > step]
        if later:
            first, end, of = step + 1, later[0], iteration
        else:
            first, end, of = 0, self.barriers[0], iteration + 1
        return {(of, n) for n, (start, _) in enumerate(self.reads) if first <= start <= end}


def landing(reads: Sequence[tuple[int, int]], steps: int, halves: bool, stages: int) -> Landing:
    """The loads of an iteration of so many register steps, which may be taken in halves."""
    middle = (steps // 2 - 1,) if halves else ()
    return Landing(tuple(reads), (*middle, steps - 1), stages)
