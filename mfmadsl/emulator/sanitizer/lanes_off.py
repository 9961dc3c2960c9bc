"""Waves that jump past the instruction that turns their lanes on again, store, and end.

A region that some lanes execute begins with an instruction that saves EXEC, and the program says
where it ends by one that gives EXEC those lanes back. Whoever jumps from inside to what comes
behind that one goes on with lanes off that others have there. It is told where nothing turns them
on until the wave ends, and something is stored meanwhile: compilers end a wave so, but store
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from mfmadsl.emulator.machine.control import CONDITIONS, branch_target
from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.wave import EXEC_PAIR, Waves
from mfmadsl.emulator.text.assembly import Instruction, Program
from mfmadsl.emulator.text.operand import EXEC, Register

_SAVES = re.compile(r"s_(and|andn2)_saveexec_b64")
_GIVES_BACK = ("s_or_b64", "s_mov_b64")
_LEAVES = re.compile(r"s_branch|s_endpgm|s_setpc_b64|s_swappc_b64|s_trap")
_STORES = re.compile(r"(global|flat|buffer|scratch)_(store|atomic)\w*|ds_(write|add|min|max)\w*")


@dataclass(frozen=True)
class Skipped:
    """What a jump passes: the place of the instruction, and what it gives back."""

    place: int
    saved: Register


def skipped(program: Program) -> Mapping[int, Skipped]:
    """The jumps of a program that pass the end of a region that they are in, by their places."""
    regions = list(_regions(program))
    found = {}
    for place, branch in enumerate(program.instructions if regions else ()):
        target = branch_target(program, branch)
        if target is None or target <= place:
            continue
        for start, passed in regions:
            if start < place < passed.place < target and not _left(program, passed.place, target):
                found[place] = passed
    return found


def _regions(program: Program) -> Iterator[tuple[int, Skipped]]:
    """Where regions begin and end: EXEC is saved, and comes back from where nothing else has been
    put meanwhile."""
    saved: dict[Register, int] = {}
    for place, each in enumerate(program.instructions):
        if not each.operands:
            continue
        if each.name in _GIVES_BACK and each.operands[0] == EXEC_PAIR:
            for register, start in saved.items():
                if register in each.operands[1:]:
                    yield start, Skipped(place, register)
        target = each.operands[0]
        if not isinstance(target, Register) or target.bank != "s":
            continue
        saved = {x: p for x, p in saved.items() if set(x.indices).isdisjoint(target.indices)}
        copies = each.name == "s_mov_b64" and each.operands[1] == EXEC_PAIR
        if copies or _SAVES.fullmatch(each.name):
            saved[target] = place


def _left(program: Program, start: int, end: int) -> bool:
    """Whether what comes behind a region's end leads elsewhere than to where a jump leads."""
    return any(_LEAVES.fullmatch(each.name) for each in program.instructions[start:end])


class LanesOff:
    """Follows the waves of a portion from such jumps to their ends."""

    def __init__(self, program: Program, count: int, jumps: Mapping[int, Skipped]) -> None:
        self._program, self._skipped = program, jumps
        self._jumped = np.full(count, -1, np.int64)
        self._stored = np.full(count, -1, np.int64)
        self._any = False

    def passes(self, waves: Waves, instruction: Instruction) -> None:
        """Waves are about to branch, or to end."""
        if not self._skipped:
            return
        if self._any and instruction.name == "s_endpgm":
            self._end(waves)
        passed = self._skipped.get(waves.pc - 1)
        if passed is None:
            return
        condition = CONDITIONS.get(instruction.name.removeprefix("s_cbranch_"))
        first = passed.saved.index
        off = (waves.scalar[first : first + 2] & ~waves.scalar[EXEC : EXEC + 2]).any(axis=0)
        lost = off & (True if condition is None else condition(waves))
        self._jumped[waves.index[lost]] = waves.pc - 1
        self._stored[waves.index[lost]] = -1
        self._any = self._any or bool(lost.any())

    def follows(self, waves: Waves) -> bool:
        """Whether any of the waves has jumped so."""
        return self._any and bool((self._jumped[waves.index] >= 0).any())

    def executes(self, waves: Waves, instruction: Instruction, operation: Operation) -> None:
        """Waves are about to execute another instruction."""
        if not self._any:
            return
        if any(each.bank == "s" and EXEC in each.indices for each in operation.writes):
            self._jumped[waves.index] = -1
        elif _STORES.fullmatch(instruction.name):
            first = (self._jumped[waves.index] >= 0) & (self._stored[waves.index] < 0)
            self._stored[waves.index[first]] = waves.pc - 1

    def _end(self, waves: Waves) -> None:
        bad = (self._jumped[waves.index] >= 0) & (self._stored[waves.index] >= 0)
        if not bad.any():
            return
        wave = int(np.argmax(bad))
        jump, store = (int(each[waves.index[wave]]) for each in (self._jumped, self._stored))
        lines = self._program.instructions
        passed = lines[self._skipped[jump].place]
        waves.fault(
            "lanes-off",
            f"a wave ends with lanes off: this jumped past `{passed.text}` in line {passed.line}, "
            f"which turns them on again, and line {lines[store].line} has stored without them",
            wave,
            at=lines[jump],
        )
