"""Memory instructions that have been issued and not yet waited for (CDNA3 ISA, section 4.4).

Each wave numbers its instructions of a counter: its tickets. `s_waitcnt` completes the oldest, as
instructions of one kind complete in order; scalar loads do not, so that only a wait for 0 counts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.wait import LARGEST, Counter
from mfmadsl.emulator.machine.wave import Waves

Tickets = npt.NDArray[np.int64]
Selected = slice | npt.NDArray[np.int64]


class InFlight:
    """The tickets of all waves: how many each has issued, and up to which all are complete."""

    def __init__(self, waves: int) -> None:
        self.issued: dict[Counter, Tickets] = {c: np.zeros(waves, np.int64) for c in LARGEST}
        self.done: dict[Counter, Tickets] = {c: np.zeros(waves, np.int64) for c in LARGEST}
        self._waves = waves
        self._out_of_order = np.zeros(waves, np.bool_)
        self._pending: dict[tuple[str, int], dict[Counter, Tickets]] = {}

    def used(self, waves: Waves, chosen: Selected, operation: Operation) -> None:
        """Tell a fault where an instruction touches a register that a load will still change."""
        if not self._pending:
            return
        for verb, registers in (
            ("reads", [read.register for read in operation.reads]),
            ("writes", operation.writes),
        ):
            for register in registers:
                for index in register.indices:
                    loads = self._pending.get((register.bank, index))
                    if loads is not None:
                        self._check(waves, chosen, operation, verb, register.bank, index, loads)

    def _check(
        self,
        waves: Waves,
        chosen: Selected,
        operation: Operation,
        verb: str,
        bank: str,
        index: int,
        loads: dict[Counter, Tickets],
    ) -> None:
        in_order = operation.counters if verb == "writes" else ()
        for counter, tickets in loads.items():
            mixed = (
                self._out_of_order if counter == "lgkmcnt" else np.zeros_like(self._out_of_order)
            )
            if counter in in_order and not mixed.any():
                continue  # a later load of the same kind comes later
            late = tickets[chosen] > self.done[counter][chosen]
            if late.any():
                wave = int(np.argmax(late))
                ahead = int((self.issued[counter] - tickets)[chosen][wave])
                enough = 0 if mixed[chosen][wave] else ahead
                waves.fault(
                    "in-flight",
                    f"{verb} {bank}{index}, which a load still in flight will write: "
                    f"it needs `s_waitcnt {counter}({enough})` before",
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
        for counter in operation.counters:
            self.issued[counter][chosen] += 1
            if counter == "vmcnt" or not self._out_of_order.any():
                # The chip does not issue more than the counter holds: the oldest are complete.
                stalled = self.issued[counter] - LARGEST[counter]
                np.maximum(self.done[counter], stalled, out=self.done[counter])
            for register in operation.writes:
                for index in register.indices:
                    tickets = self._pending.setdefault((register.bank, index), {})
                    mine = tickets.setdefault(counter, np.zeros(self._waves, np.int64))
                    mine[chosen] = self.issued[counter][chosen]
        if not operation.in_order:
            self._out_of_order[chosen] = True

    def wait(self, chosen: Selected, counts: dict[Counter, int]) -> None:
        """Complete all but so many of the youngest instructions."""
        for counter, count in counts.items():
            done = self.issued[counter][chosen] - count
            if counter == "lgkmcnt":
                if count:
                    done = np.where(self._out_of_order[chosen], 0, done)
                else:
                    self._out_of_order[chosen] = False
            self.done[counter][chosen] = np.maximum(self.done[counter][chosen], done)
        self._pending = {
            register: left
            for register, loads in self._pending.items()
            if (left := {c: t for c, t in loads.items() if (t > self.done[c]).any()})
        }
