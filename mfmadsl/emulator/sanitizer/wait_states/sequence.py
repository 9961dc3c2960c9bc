"""What waves have executed last, and what the next instruction lacks behind it.

Waves that run together mostly have executed the same: a sequence has a number, and what follows
when an instruction is appended is worked out once for each sequence and instruction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.error import EarlierAccess
from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.native.stretch import Stretch
from mfmadsl.emulator.sanitizer.in_flight import Selected
from mfmadsl.emulator.sanitizer.wait_states.hazard import Judged, Missing, judged, missing
from mfmadsl.emulator.sanitizer.wait_states.issued import issue_of, spelled
from mfmadsl.emulator.sanitizer.wait_states.matrix import MATRIX_HAZARDS
from mfmadsl.emulator.sanitizer.wait_states.replay import replayed
from mfmadsl.emulator.sanitizer.wait_states.vector import VECTOR_HAZARDS
from mfmadsl.emulator.text.assembly import Instruction, Program
from mfmadsl.model import assumed

LONGEST = 20
"""The most wait states that any hazard asks for."""

_LONGEST_NOP = 8  # wait states of one `s_nop` as LLVM writes it; all chips have it

Sequence = tuple[Judged, ...]
"""The youngest first."""


@dataclass(frozen=True)
class Lack:
    """A message for an instruction, the instruction that it is due to, and how many wait states
    are missing between the two."""

    message: str
    first: Instruction
    states: int


class Sequences:
    """The sequences of a program, numbered as they are met; 0 is that of a wave that starts."""

    def __init__(self, program: Program) -> None:
        family = assumed(program.arch).family
        self._hazards = tuple(r for r in (*VECTOR_HAZARDS, *MATRIX_HAZARDS) if family in r.families)
        self._may_replay = bool(family) and program.retries
        # LLVM's recognizer remembers more where there are accumulation registers.
        self._reach = LONGEST - 1 if program.registers.accumulation else 5
        self._known: list[Sequence] = [()]
        self._numbers: dict[tuple[int, ...], int] = {(): 0}
        self._steps: dict[tuple[int, int], Judged] = {}
        self._followers: dict[tuple[int, int, int], tuple[int, Lack | None]] = {}
        self._paths: dict[tuple[int, Stretch], tuple[int, ...]] = {}
        self._operations: dict[int, Operation | None] = {}  # kept, so that their ids stay theirs

    def follow(
        self, number: int, pc: int, instruction: Instruction, operation: Operation | None
    ) -> tuple[int, Lack | None]:
        """The sequence with an instruction behind it, and what the instruction lacks there.

        An instruction has several operations where M0 chooses registers.
        """
        key = number, pc, id(operation)
        found = self._followers.get(key)
        if found is None:
            self._operations[key[2]] = operation
            step = self._steps.get(key[1:])
            if step is None:
                step = self._steps[key[1:]] = judged(
                    self._hazards, issue_of(instruction, operation)
                )
            older = self._known[number]
            found = self._number(_recent(step, older)), self._lack(step, older)
            self._followers[key] = found
        return found

    def along(self, number: int, stretch: Stretch) -> tuple[int, ...]:
        """The sequences behind each instruction of a stretch, up to one that lacks something."""
        key = number, stretch
        found = self._paths.get(key)
        if found is None:
            numbers = []
            for pc, part in enumerate(stretch.parts, stretch.first):
                number, lack = self.follow(number, pc, part.instruction, part.operation)
                if lack is not None:
                    break
                numbers.append(number)
            found = self._paths[key] = tuple(numbers)
        return found

    def _number(self, sequence: Sequence) -> int:
        key = tuple(map(id, sequence))
        if key not in self._numbers:
            self._numbers[key] = len(self._known)
            self._known.append(sequence)
        return self._numbers[key]

    def _lack(self, last: Judged, older: Sequence) -> Lack | None:
        lacking = missing(older, last)
        if lacking:
            worst = max(lacking, key=lambda each: each.needed - each.found)
            return Lack(_message(worst), worst.first.instruction, worst.needed - worst.found)
        if not self._may_replay:
            return None
        again = replayed((each.step for each in older), last.step, self._reach)
        if again is None:
            return None
        message = (
            f"a retry after a page fault (XNACK) executes it again, and {again.reason}: put "
            "`s_nop 0` before, or leave `:xnack+` out of `.amdgcn_target`"
        )
        return Lack(message, again.first.instruction, 1)


def _recent(last: Judged, older: Sequence) -> Sequence:
    """A sequence with one more step, without those too far behind to matter."""
    kept, states = [last], last.step.states
    for each in older:
        if states >= LONGEST:
            break
        kept.append(each)
        states += each.step.states
    return tuple(kept)


def _message(lack: Missing) -> str:
    left = lack.needed - lack.found
    nops = [
        f"`s_nop {min(left - done, _LONGEST_NOP) - 1}`" for done in range(0, left, _LONGEST_NOP)
    ]
    return (
        f"{lack.hazard.how} {spelled(lack.place)} {lack.found} wait states after "
        f"{lack.hazard.what}, and {lack.needed} are needed: put {' and '.join(nops)} before"
    )


class WaveSequences:
    """Which sequence each of the waves that run together has executed."""

    def __init__(self, waves: int, sequences: Sequences) -> None:
        self._sequences = sequences
        self._of = np.zeros(waves, np.int64)
        self._paths: dict[int, tuple[int, ...]] = {}

    def executes(
        self, waves: Waves, chosen: Selected, instruction: Instruction, operation: Operation | None
    ) -> None:
        """Waves execute an instruction: tell a fault where it comes too early."""
        before = self._of[chosen]
        first = int(before[0])
        if (before == first).all():
            number, lack = self._sequences.follow(first, waves.pc - 1, instruction, operation)
            self._of[chosen] = number
            self._tell(waves, lack, 0)
            return
        after: npt.NDArray[np.int64] = np.empty_like(before)
        for each in np.unique(before):
            number, lack = self._sequences.follow(int(each), waves.pc - 1, instruction, operation)
            after[before == each] = number
            self._tell(waves, lack, int(np.argmax(before == each)))
        self._of[chosen] = after

    def ready(self, chosen: Selected, stretch: Stretch, count: int) -> int:
        """How many instructions of a stretch lack nothing."""
        before = self._of[chosen]
        first = int(before[0])
        numbers = [first] if (before == first).all() else np.unique(before).tolist()
        self._paths = {each: self._sequences.along(each, stretch) for each in numbers}
        return min(count, *map(len, self._paths.values()))

    def ran(self, chosen: Selected, count: int) -> None:
        """So many of these have been executed."""
        if len(self._paths) == 1:
            (path,) = self._paths.values()
            self._of[chosen] = path[count - 1]
            return
        before = self._of[chosen]
        after = np.zeros_like(before)
        for number, path in self._paths.items():
            after[before == number] = path[count - 1]
        self._of[chosen] = after

    @staticmethod
    def _tell(waves: Waves, lack: Lack | None, wave: int) -> None:
        if lack is not None:
            _, number = waves.position.of(int(waves.index[wave]))
            earlier = EarlierAccess(lack.first.line, lack.first.text, number)
            waves.fault("wait-states", lack.message, wave, earlier=earlier)
