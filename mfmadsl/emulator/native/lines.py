"""Straight lines of a program, which become native code once they have run often enough.

A line begins at the program's entry, at a label, or behind a branch, and ends before the next. What
of it has native code is executed as stretches; the interpreter executes the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.machine.control import BRANCHES, COMPUTED, PASSED
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.native.form import CodeForm, NativeStep
from mfmadsl.emulator.native.heat import HEAT, is_considered
from mfmadsl.emulator.native.name import name_of
from mfmadsl.emulator.native.stretch import Part, Stretch, stretch_of
from mfmadsl.emulator.text.assembly import Program

if TYPE_CHECKING:
    from mfmadsl.emulator.native.checked import PieceSizes
    from mfmadsl.emulator.native.library import Library

Check = Callable[[Waves, int], Operation]
_PASSES = PASSED - {"s_endpgm", "s_barrier"}
_NOTHING = NativeStep(CodeForm("nothing", ""))


class _Line:
    """A straight line that has not been compiled."""

    def __init__(self, first: int, end: int) -> None:
        self.first, self.end = first, end
        self.visits = 0
        self.parts: list[Part | None] | None = None
        self.forms: dict[str, CodeForm] = {}
        self.counts: Counter[str] = Counter()

    def describe(self, parts: list[Part | None]) -> None:
        """Its instructions, as far as they have native code."""
        self.parts = parts
        for step in (step for part in parts if part for step in part.steps):
            self.counts[name_of(step.form)] += 1
            self.forms[name_of(step.form)] = step.form


def library() -> Library:
    """The library, which needs LLVM, whose import kernels need not wait for that never get hot."""
    from mfmadsl.emulator.native.library import library as known

    return known()


class Lines:
    """The lines of a program, and the stretches that have been made of them. With `is_checked` they
    are for those who look at what the instructions do, who take `times` as long to interpret."""

    def __init__(self, program: Program, machine: Machine, is_checked: bool, times: int) -> None:
        self._program, self._machine = program, machine
        self._is_checked, self._times = is_checked, times
        self._sizes: PieceSizes | None = None
        count = len(program.instructions)
        self._lines: list[_Line | None] = [None] * count
        self._stretches: list[Stretch | None] = [None] * count
        for line in _lines_of(program):
            self._lines[line.first] = line

    def at(self, waves: Waves, check: Check) -> Stretch | None:
        """The stretch that begins where the waves stand. `check` makes the instruction at a place
        ready for the interpreter, and raises EmulationError where that refuses it."""
        found = self._stretches[waves.pc]
        if found is not None:
            return found
        line = self._lines[waves.pc]
        if line is None or not self._is_hot(line, waves, check):
            return None
        self._compile(line)
        return self._stretches[waves.pc]

    def split(self, stretch: Stretch, done: int) -> None:
        """So many instructions of a stretch have been executed, the interpreter has to execute the
        next: let what comes behind that one begin anew."""
        if done + 1 < stretch.count and self._stretches[stretch.first + done + 1] is None:
            self._stretches[stretch.first + done + 1] = stretch.behind(done + 1)

    def _is_hot(self, line: _Line, waves: Waves, check: Check) -> bool:
        """Whether a line has taken as long as its code would take to make."""
        line.visits += 1
        each = HEAT.interprets(self._times * (line.end - line.first), waves.count)
        if not is_considered(self._times * line.visits, waves.count):
            return False
        if not library().is_for_this_processor:
            return False
        if line.parts is None:
            line.describe(self._parts(line, waves, check))
        return HEAT.is_worth(library(), line.forms, line.counts, self._times * each)

    def _parts(self, line: _Line, waves: Waves, check: Check) -> list[Part | None]:
        found: list[Part | None] = []
        issued: Counter[str] = Counter()
        for place in range(line.first, line.end):
            found.append(self._part(waves, place, check, issued))
        return found

    def _part(self, waves: Waves, place: int, check: Check, issued: Counter[str]) -> Part | None:
        instruction = self._program.instructions[place]
        before = dict(issued)
        if instruction.name in _PASSES:
            # Those who look want to know what becomes of caches.
            watched = self._is_checked and instruction.name.startswith("buffer_")
            return None if watched else Part(instruction, None, (_NOTHING,), before)
        try:
            operation = check(waves, place)
        except EmulationError:  # the interpreter tells it when it comes there
            return None
        issued.update(operation.counters)
        if not self._is_checked:
            from mfmadsl.emulator.native.steps import describe

            step = describe(instruction, self._machine)
            return Part(instruction, operation, (step,), before) if step else None
        from mfmadsl.emulator.native.checked import PieceSizes, describe_checked

        if self._sizes is None:
            self._sizes = PieceSizes.of(self._program.instructions)
        checked = describe_checked(instruction, self._machine, issued, self._sizes)
        if checked is None:
            return None
        return Part(instruction, operation, checked.steps, before, checked.accesses)

    def _compile(self, line: _Line) -> None:
        assert line.parts is not None
        self._lines[line.first] = None
        addresses = library().addresses(line.forms)
        driver = library().driver()
        for first, parts in _pieces(line.parts, self._is_checked):
            found = stretch_of(parts, addresses, driver, line.first + first)
            self._stretches[found.first] = found


def _pieces(parts: Sequence[Part | None], ends_with_exec: bool) -> list[tuple[int, list[Part]]]:
    """What has native code and follows one another; what changes EXEC may be the last of it."""
    pieces: list[tuple[int, list[Part]]] = []
    begins = True
    for place, part in enumerate(parts):
        if part is not None:
            if begins:
                pieces.append((place, []))
            pieces[-1][1].append(part)
        begins = part is None or (ends_with_exec and part.changes_exec)
    return pieces


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
