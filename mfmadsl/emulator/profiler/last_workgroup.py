"""The workgroup that comes last to a tile of which others have left parts, and so does more.

Workgroups that count arrivals in memory see, alone, that they are the first. One that runs again
and again on the same memory sees what others would have left there, up to the time when it is the
last one: as often as it ran, so many share a tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mfmadsl.emulator.machine.launch import Launch, Load
from mfmadsl.emulator.profiler.known_chip import chip_of
from mfmadsl.emulator.profiler.launch_time import Work
from mfmadsl.emulator.profiler.record import Recorder
from mfmadsl.emulator.profiler.timing import Timing, simulate
from mfmadsl.emulator.run import run_loaded
from mfmadsl.emulator.text.assembly import Instruction

_MOST = 1 << 10
"""Workgroups that share a tile, up to which the last one is looked for."""


@dataclass(frozen=True)
class LastWorkgroup:
    """What one does that comes first to its tile, and what it does as the last of so many `parts`.

    `read` and `stored` are the bytes of lines, and `busy` the cycles of units, that it has more of.
    """

    parts: int
    first: Recorder
    last: Recorder
    read: float
    stored: float
    busy: dict[str, int]

    def added(self, work: Work, reads: bool) -> Work:
        """The work of a launch, with what the last workgroups of tiles do beside, as a mean; what
        they read only if it is not in it."""
        busy = {
            unit: work.busy.get(unit, 0) + self.busy.get(unit, 0) / self.parts
            for unit in {**work.busy, **self.busy}
        }
        requested = work.requested + (self.read / self.parts if reads else 0.0)
        return replace(
            work, requested=requested, stored=work.stored + self.stored / self.parts, busy=busy
        )


def last_workgroup(launch: Launch, load: Load, group: int, budget: int) -> LastWorkgroup | None:
    """What a workgroup does when it is the last of its tile; None where it never does anything
    else, as often as it comes."""
    chip, loaded = chip_of(launch.program.arch), load()

    def run() -> Recorder:
        recorder = Recorder(chip)
        run_loaded(launch, loaded, budget, recorder, np.array([group]))
        return recorder

    first = run()
    for parts in range(2, min(_MOST, launch.groups) + 1):
        again = run()
        if _steps(again) > _steps(first):
            timings = [_timing(launch, each) for each in (first, again)]
            instructions = launch.program.instructions
            read, stored = (
                _bytes(timings[1], instructions, stores) - _bytes(timings[0], instructions, stores)
                for stores in (False, True)
            )
            busy = {
                unit: cycles - timings[0].busy.get(unit, 0)
                for unit, cycles in timings[1].busy.items()
            }
            return LastWorkgroup(parts, first, again, read, stored, busy)
    return None


def _steps(recorder: Recorder) -> int:
    return sum(len(trace.places) for trace in recorder.traces)


def _timing(launch: Launch, recorder: Recorder) -> Timing:
    program = launch.program
    chip, per_group = chip_of(program.arch), launch.waves_per_group
    return simulate(chip, program.instructions, recorder.operations, recorder.traces, per_group)


def _bytes(timing: Timing, instructions: Sequence[Instruction], stores: bool) -> float:
    """The bytes of lines that are stored, or read."""
    return sum(
        line_bytes
        for place, line_bytes in timing.l2_bytes.items()
        if ("_store" in instructions[place].name) == stores
    )
