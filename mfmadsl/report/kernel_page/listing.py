"""A kernel's assembly, each line with what it costs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mfmadsl.emulator.profiler import Event, Profile


@dataclass(frozen=True)
class Line:
    """A line of the text. Of an instruction: the unit that it is for, how often a wave executes it,
    and of each time the cycles that the wave waits before it, that it keeps its unit busy and, of
    an LDS instruction, that bank conflicts cost. `place` counts the instructions of the program."""

    number: int
    text: str
    place: int | None = None
    unit: str = ""
    in_loop: bool = False
    times: float = 0.0
    waits: float = 0.0
    busy: float = 0.0
    conflicts: float = 0.0

    @property
    def cycles(self) -> float:
        """All that it costs a wave: to wait for it, as often as it is executed."""
        return self.waits * self.times


def listing(profile: Profile, text: str) -> list[Line]:
    """The lines of the kernel, from its label to its last instruction.

    What a wave waits at a barrier counts for the instruction behind it.
    """
    instructions = profile.program.instructions
    place_of = {each.line: place for place, each in enumerate(instructions)}
    of_place = _events(profile)
    waits = _waits(profile)
    conflicts = {each.line: each.cycles - each.least_cycles for each in profile.lds}
    loop = profile.loop.lines if profile.loop else (0, -1)
    found = []
    lines = text.splitlines()
    label = f"{profile.program.name}:"
    before = range(instructions[0].line - 1, 0, -1)
    first = next((n for n in before if lines[n - 1].split()[:1] == [label]), instructions[0].line)
    for number, line in enumerate(lines[first - 1 : instructions[-1].line], first):
        place = place_of.get(number)
        in_loop = loop[0] <= number <= loop[1]
        if place is None:
            found.append(Line(number, line, in_loop=in_loop))
            continue
        events = of_place.get(place, [])
        count = max(1, len(events))
        found.append(
            Line(
                number, line, place, events[0].unit if events else "", in_loop,
                len(events) / max(1, profile.waves), sum(waits[place]) / count,
                sum(event.busy for event in events) / count, conflicts.get(number, 0.0),
            )
        )  # fmt: skip
    return found


def _events(profile: Profile) -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = defaultdict(list)
    for event in profile.timing.events:
        found[event.place].append(event)
    return found


def _waits(profile: Profile) -> dict[int, list[int]]:
    """For each execution of an instruction the cycles since its wave issued the one before."""
    found: dict[int, list[int]] = defaultdict(list)
    before: dict[int, int] = {}
    for event in sorted(profile.timing.events, key=lambda each: (each.wave, each.issued)):
        found[event.place].append(event.issued - before.get(event.wave, event.issued))
        before[event.wave] = event.issued
    return found
