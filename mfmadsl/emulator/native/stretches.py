"""Executes instructions of a program as native code, where they have any and run often.

The interpreter executes the others, and every instruction at which native code stops: it says what
is wrong there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.watch import Watch
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.native.fields import Field
from mfmadsl.emulator.native.form import NativeStep
from mfmadsl.emulator.native.heat import HEAT
from mfmadsl.emulator.native.lines import Check, Lines, library
from mfmadsl.emulator.native.name import name_of
from mfmadsl.emulator.native.state import State
from mfmadsl.emulator.native.stretch import Part, Stretch, stretch_of
from mfmadsl.emulator.text.assembly import Program

if TYPE_CHECKING:
    from mfmadsl.emulator.native.team import Team

_WATCHED = 8
"""How many times as long an instruction takes to interpret while the sanitizer looks on."""

_SHARED = 1 << 11
"""Steps, each of a wave, that are worth being shared by threads: some hundred microseconds."""

_Single = Stretch | NativeStep | Literal[False] | None
"""An instruction for itself: as code, or not worth that yet, or without any, or not looked at."""


def _team(threads: int) -> Team:
    """Those threads, which need LLVM as the library does: see `lines`."""
    from mfmadsl.emulator.native.team import team_of

    return team_of(threads - 1)


class LooksAhead(Protocol):
    """Looks at a stretch of instructions at once."""

    version: int
    """Another number says that `places` have changed."""

    def ready(self, waves: Waves, stretch: Stretch, most: int) -> int:
        """With how many instructions of a stretch, up to so many, nothing can be wrong but what
        their steps look at themselves."""

    def places(self, waves: Waves) -> Mapping[Field, int]:
        """What such steps look at."""

    def ran(self, waves: Waves, stretch: Stretch, count: int) -> None:
        """Waves have executed so many instructions of a stretch."""


class Stretches:
    """The native code of a program."""

    def __init__(self, program: Program, machine: Machine) -> None:
        self._program, self._machine = program, machine
        self._lines = Lines(program, machine, is_checked=False, times=1)
        self._checked: Lines | None = None
        self._singles: list[_Single] = [None] * len(program.instructions)

    def run(self, waves: Waves, most: int, check: Check, threads: int = 1) -> int:
        """Execute instructions from where the waves stand, and say how many: 0 if none, or up to
        `most`. `check` is that of `Lines.at`."""
        stretch = self._lines.at(waves, check)
        if stretch is None or stretch.count > most:
            return 0
        done = self._execute(waves, stretch, stretch.count, None, threads)
        if done < stretch.count:
            self._lines.split(stretch, done)
        return done

    def run_watched(
        self, watch: Watch, waves: Waves, most: int, check: Check, threads: int = 1
    ) -> int:
        """The same, for one who looks ahead."""
        ahead: LooksAhead | None = watch.ahead
        if ahead is None:
            return 0
        if self._checked is None:
            self._checked = Lines(self._program, self._machine, is_checked=True, times=_WATCHED)
        stretch = self._checked.at(waves, check)
        if stretch is None:
            return 0
        done = count = ahead.ready(waves, stretch, min(most, stretch.count))
        if count:
            done = self._execute(waves, stretch, count, ahead, threads)
            ahead.ran(waves, stretch, done)
        if done < min(most, stretch.count):
            self._checked.split(stretch, done)
        return done

    def run_one(self, waves: Waves, check: Check) -> bool:
        """Execute the instruction before which the waves stand, if it is on registers only and has
        run often enough; for those who are watched."""
        place = waves.pc - 1
        single = self._singles[place]
        if single is None:
            single = self._singles[place] = self._single(waves, place, check)
        if isinstance(single, NativeStep):
            each = HEAT.interprets(1, waves.count)
            name = name_of(single.form)
            if not HEAT.is_worth(library(), {name: single.form}, {name: 1}, each):
                return False
            addresses = library().addresses({name: single.form})
            part = Part(self._program.instructions[place], None, (single,))
            single = stretch_of([part], addresses, library().driver(), place)
            self._singles[place] = single
        return isinstance(single, Stretch) and self._execute(waves, single, 1, None, 1) == 1

    def _single(self, waves: Waves, place: int, check: Check) -> NativeStep | Literal[False]:
        try:
            check(waves, place)
        except EmulationError:  # the interpreter tells it
            return False
        from mfmadsl.emulator.native.steps import describe

        step = describe(self._program.instructions[place], self._machine)
        is_usable = step is not None and step.form.is_on_registers
        return step if step and is_usable and library().is_for_this_processor else False

    @staticmethod
    def _execute(
        waves: Waves, stretch: Stretch, count: int, ahead: LooksAhead | None, threads: int
    ) -> int:
        """Execute instructions of a stretch, and say how many."""
        state = waves.kept
        if state is None or not state.is_of(waves):
            state = waves.kept = State(waves)
        if not state.is_usable:
            return 0
        state.begin(waves)
        if ahead is not None:
            if state.version != ahead.version:
                state.look(ahead.places(waves), ahead.version)
            state.number_from(stretch.parts[0].issued)
        steps = stretch.starts[count]
        if threads > 1 and steps * waves.count >= _SHARED:
            done = _team(threads).execute(state, stretch, steps)
        else:
            done = stretch.driver(state.address, stretch.address, steps)
        state.end(waves, stretch.changes_scc, stretch.changes_exec)
        return stretch.parts_before(done)
