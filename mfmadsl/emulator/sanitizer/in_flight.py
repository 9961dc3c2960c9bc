"""Memory instructions that have been issued and not yet waited for (CDNA3 ISA, section 4.4).

Each wave numbers its instructions of a counter: its tickets. `s_waitcnt` completes the oldest, as
instructions of one kind complete in order; scalar loads do not, so that only a wait for 0 counts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.wait import LARGEST, Counter
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.native.stretch import Stretch
from mfmadsl.emulator.sanitizer.flight import FlightPath, Flights, Late

Tickets = npt.NDArray[np.int64]
Selected = slice | npt.NDArray[np.int64]


class InFlight:
    """The tickets of all waves: how many each has issued, and up to which all are complete."""

    def __init__(self, waves: int, flights: Flights) -> None:
        self.issued: dict[Counter, Tickets] = {c: np.zeros(waves, np.int64) for c in LARGEST}
        self.done: dict[Counter, Tickets] = {c: np.zeros(waves, np.int64) for c in LARGEST}
        self._flights = flights
        self._of = np.zeros(waves, np.int64)
        self._mixed = np.zeros(waves, np.bool_)
        # Of a counter that holds more than it can, while that does not tell which are complete.
        self._overflows = False
        self._paths: list[tuple[Selected, FlightPath]] = []

    def used(self, waves: Waves, chosen: Selected, operation: Operation) -> None:
        """Tell a fault where an instruction touches a register that a load will still change."""
        of = self._of[chosen]
        if not of.any():
            return
        shared = bool(self._mixed.any())
        found: dict[tuple[int, ...], tuple[int, Late]] = {}
        for number in np.unique(of).tolist():
            for place, late in self._flights.late(number, operation, shared).items():
                first = int(np.argmax(of == number))
                if place not in found or first < found[place][0]:
                    found[place] = first, late
        for _, (wave, late) in sorted(found.items(), key=lambda each: each[0]):
            waves.fault(
                "in-flight",
                f"{late.verb} {late.bank}{late.index}, which a load still in flight will write: "
                f"it needs `s_waitcnt {late.counter}({late.enough})` before",
                wave,
            )

    def switched(self, waves: Waves, chosen: Selected) -> None:
        """Tell a fault where vector instructions are switched on or off with accesses to memory
        under way (CDNA3 ISA, S_SETVSKIP: it needs a wait before)."""
        late = self.issued["vmcnt"][chosen] > self.done["vmcnt"][chosen]
        if late.any():
            message = "accesses to memory are still in flight: it needs `s_waitcnt vmcnt(0)` before"
            waves.fault("in-flight", message, int(np.argmax(late)))

    def issue(self, chosen: Selected, operation: Operation) -> None:
        """Give the waves a ticket for a memory instruction."""
        if not operation.counters:
            return
        shared = bool(self._mixed.any())
        self._follow(chosen, lambda number: self._flights.issue(number, operation, shared))
        for counter in operation.counters:
            self.issued[counter][chosen] += 1
            if counter == "vmcnt" or not shared:
                # The chip does not issue more than the counter holds: the oldest are complete.
                stalled = self.issued[counter] - LARGEST[counter]
                np.maximum(self.done[counter], stalled, out=self.done[counter])
            if counter == "lgkmcnt":
                self._clip(shared)
        if not operation.in_order:
            self._mixed[chosen] = True

    def _clip(self, shared: bool) -> None:
        if self._overflows and not shared:
            self._follow(slice(None), self._flights.clip)
        self._overflows = shared

    def _follow(self, chosen: Selected, step: Callable[[int], int]) -> None:
        of = self._of[chosen]
        first = int(of[0])
        if (of == first).all():
            self._of[chosen] = step(first)
            return
        numbers, inverse = np.unique(of, return_inverse=True)
        self._of[chosen] = np.array([step(each) for each in numbers.tolist()])[inverse]

    def wait(self, chosen: Selected, counts: dict[Counter, int]) -> None:
        """Complete all but so many of the youngest instructions."""
        for counter, count in counts.items():
            done = self.issued[counter][chosen] - count
            if counter == "lgkmcnt":
                if count:
                    done = np.where(self._mixed[chosen], 0, done)
                else:
                    self._mixed[chosen] = False
            self.done[counter][chosen] = np.maximum(self.done[counter][chosen], done)
            self._follow(chosen, partial(self._flights.wait, counter=counter, count=count))

    # Several instructions at once.

    def ready(self, chosen: Selected, stretch: Stretch, count: int) -> int:
        """How many instructions of a stretch use nothing that is in flight."""
        of = self._of[chosen]
        everybody = isinstance(chosen, slice)
        others = not everybody and int(self._mixed.sum()) > int(self._mixed[chosen].sum())
        stops = not everybody and self._overflows
        first = int(of[0])
        groups: list[tuple[Selected, int]] = [(chosen, first)]
        if not (of == first).all():
            numbers = np.unique(of).tolist()
            if len({self._flights.is_mixed(number) for number in numbers}) > 1:
                return 0
            index = np.arange(len(self._of)) if isinstance(chosen, slice) else chosen
            groups = [(index[of == number], number) for number in numbers]
        self._paths = [
            (waves, self._flights.along(number, stretch, others, stops)) for waves, number in groups
        ]
        return min(count, *(len(path.numbers) for _, path in self._paths))

    def ran(self, count: int) -> None:
        """So many of these have been executed."""
        for chosen, path in self._paths:
            if not path.changes[count - 1]:
                continue
            number = path.numbers[count - 1]
            self._of[chosen] = number
            for counter, more in path.issued[count - 1].items():
                issued, done = self.issued[counter], path.done[count - 1][counter]
                if done is not None:
                    reached = issued[chosen] + done
                    self.done[counter][chosen] = np.maximum(self.done[counter][chosen], reached)
                if more:
                    issued[chosen] += more
            self._mixed[chosen] = self._flights.is_mixed(number)
            overflows = path.overflows[count - 1]
            self._overflows = self._overflows if overflows is None else overflows
