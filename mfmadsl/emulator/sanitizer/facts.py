"""What the sanitizer knows of a program, and learns while it runs: all launches share it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mfmadsl.emulator.sanitizer.compared import compared
from mfmadsl.emulator.sanitizer.flight import Flights
from mfmadsl.emulator.sanitizer.lanes_off import Skipped, skipped
from mfmadsl.emulator.sanitizer.polls import polls
from mfmadsl.emulator.sanitizer.wait_states import Sequences
from mfmadsl.emulator.text.assembly import Program

_FACTS = "sanitizer"


@dataclass(frozen=True)
class Facts:
    """The sequences of instructions and what was in flight, as they are met; the jumps past the end
    of a region of some lanes; and the places of loads that poll, or whose value is compared."""

    sequences: Sequences
    flights: Flights
    jumps: Mapping[int, Skipped]
    polls: frozenset[int]
    compared: frozenset[int]

    @classmethod
    def of(cls, program: Program) -> Facts:
        """Those of a program."""
        found: Facts | None = program.kept.get(_FACTS)
        if found is None or found.flights.is_full:
            found = program.kept[_FACTS] = cls(
                Sequences(program), Flights(), skipped(program), polls(program), compared(program)
            )
        return found
