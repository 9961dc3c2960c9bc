"""Straight lines of a program that run as native code, once they have run often enough.

A line begins at the program's entry, at a label, or behind a branch, and ends before the next. What
of it has native code runs as stretches, one native call each; the interpreter runs the rest, and
every instruction at which native code stops: it says what is wrong there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.machine.control import BRANCHES, COMPUTED, PASSED
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.native.fields import RUN_WORD, STEP_WORDS
from mfmadsl.emulator.native.form import CodeForm, NativeStep
from mfmadsl.emulator.native.heat import HEAT, is_considered
from mfmadsl.emulator.native.name import name_of
from mfmadsl.emulator.native.state import State
from mfmadsl.emulator.text.assembly import Program

if TYPE_CHECKING:
    from mfmadsl.emulator.native.library import Library

Check = Callable[[Waves, int], object]
_PASSES = PASSED - {"s_endpgm", "s_barrier"}
_NOTHING = NativeStep(CodeForm("nothing", ""))


@dataclass(frozen=True)
class Stretch:
    """Instructions that follow one another, as steps."""

    count: int
    words: npt.NDArray[np.int64]
    address: int
    changes_scc: bool
    changes_exec: bool


_Single = Stretch | NativeStep | Literal[False] | None
"""An instruction for itself: as code, or not worth that yet, or without any, or not looked at."""


class _Line:
    """A straight line that has not been compiled."""

    def __init__(self, first: int, end: int) -> None:
        self.first, self.end = first, end
        self.visits = 0
        self.steps: list[NativeStep | None] | None = None
        self.forms: dict[str, CodeForm] = {}
        self.counts: Counter[str] = Counter()


def _library() -> Library:
    """The library, which needs LLVM, whose import kernels need not wait for that never get hot."""
    from mfmadsl.emulator.native.library import library

    return library()


class Stretches:
    """The lines and stretches of a program."""

    def __init__(self, program: Program, machine: Machine) -> None:
        self._program, self._machine = program, machine
        self._lines: list[_Line | None] = [None] * len(program.instructions)
        self._stretches: list[Stretch | None] = [None] * len(program.instructions)
        self._singles: list[_Single] = [None] * len(program.instructions)
        self._driver: Callable[[int, int, int], int] | None = None
        for line in _lines_of(program):
            self._lines[line.first] = line

    def run(self, waves: Waves, most: int, check: Check) -> int:
        """Execute instructions from where the waves stand, and say how many: 0 if none, or up to
        `most`. `check` makes the instruction at a place ready for the interpreter, and raises
        EmulationError where that refuses it."""
        pc = waves.pc
        stretch = self._stretches[pc]
        if stretch is None:
            line = self._lines[pc]
            if line is None or not self._is_hot(line, waves, check):
                return 0
            self._compile(line)
            stretch = self._stretches[pc]
            if stretch is None:
                return 0
        if stretch.count > most:
            return 0
        return self._execute(waves, stretch)

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
            if not HEAT.is_worth(_library(), {name: single.form}, {name: 1}, each):
                return False
            addresses = _library().addresses({name: single.form})
            self._driver = _library().driver()
            single = self._singles[place] = stretch_of([single], addresses)
        return isinstance(single, Stretch) and self._execute(waves, single) == 1

    def _single(self, waves: Waves, place: int, check: Check) -> NativeStep | Literal[False]:
        step = self._step(waves, place, check)
        is_usable = step is not None and step.form.is_on_registers
        return step if step and is_usable and _library().is_for_this_processor else False

    def _execute(self, waves: Waves, stretch: Stretch) -> int:
        """Execute a stretch, and say how many instructions of it."""
        assert self._driver is not None
        state = waves.kept
        if state is None or not state.is_of(waves):
            state = waves.kept = State(waves)
        if not state.is_usable:
            return 0
        state.begin(waves)
        done = self._driver(state.address, stretch.address, stretch.count)
        state.end(waves, stretch.changes_scc, stretch.changes_exec)
        return done

    def _is_hot(self, line: _Line, waves: Waves, check: Check) -> bool:
        """Whether a line has taken as long as its code would take to make."""
        line.visits += 1
        each = HEAT.interprets(line.end - line.first, waves.count)
        if not is_considered(line.visits, waves.count):
            return False
        if not _library().is_for_this_processor:
            return False
        if line.steps is None:
            line.steps = [self._step(waves, place, check) for place in range(line.first, line.end)]
            for step in line.steps:
                if step:
                    line.counts[name_of(step.form)] += 1
                    line.forms[name_of(step.form)] = step.form
        return HEAT.is_worth(_library(), line.forms, line.counts, each)

    def _step(self, waves: Waves, place: int, check: Check) -> NativeStep | None:
        instruction = self._program.instructions[place]
        if instruction.name in _PASSES:
            return _NOTHING
        try:
            check(waves, place)
        except EmulationError:  # the interpreter tells it when it comes there
            return None
        from mfmadsl.emulator.native.steps import describe

        return describe(instruction, self._machine)

    def _compile(self, line: _Line) -> None:
        assert line.steps is not None
        self._lines[line.first] = None
        known = _library()
        addresses = known.addresses(line.forms)
        self._driver = known.driver()
        first = 0
        for place, step in enumerate([*line.steps, None]):
            if step is None:
                if first < place:
                    steps = [each for each in line.steps[first:place] if each]
                    self._stretches[line.first + first] = stretch_of(steps, addresses)
                first = place + 1


def stretch_of(steps: list[NativeStep], addresses: dict[str, int]) -> Stretch:
    """Steps as native code takes them; `addresses` has where the code of their forms is."""
    words = np.zeros((len(steps), STEP_WORDS), np.int64)
    for row, step in zip(words, steps, strict=True):
        row[0] = addresses[name_of(step.form)]
        row[1 : 1 + len(step.values)] = step.values
    following = 0
    for row, step in zip(words[::-1], steps[::-1], strict=True):
        following = following + 1 if step.form.is_on_registers else 0
        row[RUN_WORD] = following
    return Stretch(
        len(steps),
        words,
        words.ctypes.data,
        any(step.changes_scc for step in steps),
        any(step.changes_exec for step in steps),
    )


def _lines_of(program: Program) -> list[_Line]:
    """The straight lines of a program."""
    starts = {program.entry, *program.labels.values()}
    lines, first = [], None
    for place, instruction in enumerate(program.instructions):
        ends = _ends_line(instruction.name)
        if first is not None and (ends or place in starts):
            lines.append(_Line(first, place))
            first = None
        if first is None and not ends:
            first = place
    return lines


def _ends_line(name: str) -> bool:
    return name in ("s_endpgm", "s_barrier", *COMPUTED) or name.startswith(BRANCHES)
