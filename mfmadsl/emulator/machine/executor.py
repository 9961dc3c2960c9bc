"""Waves that execute instructions together, until they part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.machine.bits import Array
from mfmadsl.emulator.machine.control import COMPUTED, CONDITIONS, PASSED, branch_target
from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.vector_mode import (
    INDEXED_UNITS,
    SETS_VECTOR_MODE,
    SKIPS,
    VECTOR_UNITS,
    common_mode,
    indexed,
    vector_modes,
)
from mfmadsl.emulator.machine.watch import Watch
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.text.assembly import Instruction, Program
from mfmadsl.emulator.text.operand import LAST_SCALAR, spelled

_TICK = 64
"""Instructions, each of a millisecond or so where many waves run."""


OFTEN = 64
"""Branches back, after which whoever runs waves is told of each: they may wait in a loop."""


Shortcut = Callable[[Waves, int], int]
"""Executes instructions from where the waves stand, up to so many at once, and says how many."""


class Executor:
    """Has groups of waves execute instructions, and joins those that meet again.

    `budget` is how many instructions a wave may execute; `compile_one` makes an instruction ready
    when it is met first. `tick` is called every so many instructions.
    """

    def __init__(
        self,
        program: Program,
        budget: int,
        compile_one: Callable[[Instruction], Operation],
        operations: list[Operation | None] | None = None,
    ) -> None:
        """`operations` has those that were made ready before."""
        self.program = program
        self._budget = budget
        self._compile = compile_one
        self.tick: Callable[[], None] | None = None
        self.is_back: Callable[[Waves], bool] | None = None
        """Whether waves that have come back often may be as they were, so that they may wait."""
        self.shortcut: Shortcut | None = None
        self.watched_shortcut: Callable[[Watch, Waves, int], int] | None = None
        self.single: Callable[[Waves], bool] | None = None
        count = len(program.instructions)
        self._compiled: list[Operation | None] = operations or [None] * count
        self._executed = np.zeros(len(program.instructions), np.int64)
        # Few programs change what vector instructions do.
        names = {each.name for each in program.instructions}
        self.changes_mode = not names.isdisjoint(SETS_VECTOR_MODE)
        self._indexed: dict[tuple[int, int], Operation] = {}

    def counts(self) -> dict[str, int]:
        """How many waves have executed an instruction, repetitions counted, by mnemonic."""
        total: Counter[str] = Counter()
        for instruction, count in zip(self.program.instructions, self._executed, strict=True):
            if count:
                total[instruction.name] += int(count)
        return dict(sorted(total.items()))

    def executed(self) -> int:
        """How many instructions all waves have executed, repetitions counted."""
        return int(self._executed.sum())

    def advance(
        self,
        waves: Waves,
        meeting: int | None,
        watch: Watch | None = None,
        until: int | None = None,
    ) -> tuple[str, list[Waves]]:
        """Execute until the end, a barrier, a divergent branch, another group's place, or so many
        steps; of waves that have come back often, until they do so again.

        Says which it was, and gives the groups of waves that took the branch.
        """
        instructions, executed = self.program.instructions, self._executed
        shortcut = self._shortcut(waves, watch)
        while True:
            pc = waves.pc
            if pc >= len(instructions):
                raise EmulationError("the program ran past its last instruction", kind="no-end")
            if shortcut is not None and self._takes_shortcut(shortcut, waves, meeting, until):
                if meeting is not None and waves.pc >= meeting:
                    return "meeting", []
                if until is not None and waves.steps >= until:
                    return "turn", []
                continue
            instruction = instructions[pc]
            executed[pc] += waves.count
            waves.pc = pc + 1
            waves.steps += 1
            if self.tick is not None and not waves.steps % _TICK:
                self.tick()
            if waves.steps > self._budget:
                raise EmulationError(
                    f"a wave has executed {self._budget} instructions without reaching its end",
                    instruction.line, instruction.text, "budget",
                )  # fmt: skip
            name = instruction.name
            if name in PASSED or name.startswith(("s_branch", "s_cbranch")):
                if watch is not None:
                    watch.passes(waves, instruction)
                if name == "s_endpgm":
                    return "end", []
                if name == "s_barrier":
                    return "barrier", []
                split = self._branch(waves, instruction) if "branch" in name else []
                if split:
                    return "split", split
            else:
                operation = self._compiled[pc] or self.operation(waves, pc)
                try:
                    split = self._execute(waves, pc, operation, watch)
                except EmulationError as error:
                    raise error.at(instruction.line, instruction.text) from None
                if split:
                    return "split", split
            if waves.pc <= pc:
                waves.returns += 1
                waves.returned = True
                if waves.returns >= OFTEN:
                    if until is not None or self.is_back is None or self.is_back(waves):
                        return "return", []
                    waves.returned = False
            if meeting is not None and waves.pc >= meeting:
                return "meeting", []
            if until is not None and waves.steps >= until:
                return "turn", []

    def operation(self, waves: Waves, pc: int) -> Operation:
        """The instruction at a place, made ready. Raises EmulationError for one that is not known,
        or uses registers that the kernel has not asked for."""
        operation = self._compiled[pc]
        if operation is None:
            instruction = self.program.instructions[pc]
            operation = self._compile(instruction)
            _check_registers(waves, self.program, instruction, operation)
            self._compiled[pc] = operation
        return operation

    def _shortcut(self, waves: Waves, watch: Watch | None) -> Shortcut | None:
        """Who executes several instructions at once."""
        if watch is None and waves.watch is None:
            return self.shortcut
        if watch is None or watch.ahead is None or self.watched_shortcut is None:
            return None
        return partial(self.watched_shortcut, watch)

    def _takes_shortcut(
        self, shortcut: Shortcut, waves: Waves, meeting: int | None, until: int | None
    ) -> bool:
        """Whether instructions have been executed at once."""
        pc, steps = waves.pc, waves.steps
        most = self._budget - steps
        if meeting is not None:
            most = min(most, meeting - pc)
        if until is not None:
            most = min(most, until - steps)
        done = shortcut(waves, most)
        if not done:
            return False
        self._executed[pc : pc + done] += waves.count
        waves.pc, waves.steps = pc + done, steps + done
        if self.tick is not None and steps // _TICK != waves.steps // _TICK:
            self.tick()
        return True

    def _execute(
        self, waves: Waves, pc: int, operation: Operation, watch: Watch | None
    ) -> list[Waves]:
        """Execute what computes or accesses memory; the waves that go another way split off."""
        instruction = self.program.instructions[pc]
        if self.changes_mode and operation.unit in VECTOR_UNITS:
            mode = common_mode(waves)
            if mode < 0:
                return self._by_mode(waves, pc)
            if mode & SKIPS:
                if watch is not None:
                    watch.passes(waves, instruction)
                return []
            if mode and operation.unit in INDEXED_UNITS:
                operation = self._in_mode(waves, pc, operation, mode)
        if watch is not None:
            watch.before(waves, instruction, operation)
        # What is swapped with the program counter may be written over.
        leads_to = operation.leads_to and operation.leads_to(waves)
        if watch is None or self.single is None or not self.single(waves):
            operation.execute(waves)
        if watch is not None:
            watch.after(waves, instruction, operation)
        return self._jump(waves, instruction, leads_to) if instruction.name in COMPUTED else []

    def _by_mode(self, waves: Waves, pc: int) -> list[Waves]:
        """Waves of several modes, before an instruction that depends on it: those of the first one
        go on, the others split off."""
        self._executed[pc] -= waves.count
        waves.steps -= 1
        modes = vector_modes(waves)
        first, *apart = [waves.select(modes == mode, pc) for mode in np.unique(modes)]
        waves.__dict__.update(first.__dict__)
        return apart

    def _in_mode(self, waves: Waves, pc: int, operation: Operation, mode: int) -> Operation:
        """A vector instruction on the registers that M0 chooses."""
        found = self._indexed.get((pc, mode))
        if found is None:
            instruction = self.program.instructions[pc]
            found = self._compile(indexed(instruction, operation, mode))
            _check_registers(waves, self.program, instruction, found)
            self._indexed[pc, mode] = found
        return found

    def joined(self, groups: list[Waves]) -> list[Waves]:
        """Groups of a portion at the same program counter, made one, unless they are in different
        modes."""
        by_place: dict[tuple[int, int, int], Waves] = {}
        for group in groups:
            mode = common_mode(group) if self.changes_mode else 0
            key = group.portion, group.pc, mode
            by_place[key] = by_place[key].join(group) if key in by_place else group
        return list(by_place.values())

    def _jump(self, waves: Waves, instruction: Instruction, leads_to: Array | None) -> list[Waves]:
        """Follow a jump to addresses, or a call of a label; the waves that go elsewhere than the
        first ones do, split off."""
        if leads_to is None:
            called = self.program.labels.get(spelled(instruction.operands[-1]))
            if called is None:
                raise EmulationError("a call of nothing")
            waves.pc = called
            return []
        addresses = np.broadcast_to(leads_to, (waves.count,))
        groups = []
        for address in np.unique(addresses):
            place = self.program.addresses.get(int(address))
            if place is None:
                reason = self.program.unread.get(int(address))
                raise EmulationError(
                    f"jumps to {int(address):#x}, where no instruction is known to begin"
                    + (f": {reason}" if reason else "")
                )
            groups.append((addresses == address, place))
        if len(groups) == 1:
            waves.pc = groups[0][1]
            return []
        first, *apart = [waves.select(chosen, place) for chosen, place in groups]
        waves.__dict__.update(first.__dict__)
        return apart

    def _branch(self, waves: Waves, instruction: Instruction) -> list[Waves]:
        """Follow a branch; if only some waves take it, those that do, split off."""
        target = branch_target(self.program, instruction)
        if target is None:
            raise EmulationError("branch to nowhere", instruction.line, instruction.text)
        if instruction.name == "s_branch":
            waves.pc = target
            return []
        condition = instruction.name.removeprefix("s_cbranch_")
        if condition not in CONDITIONS:
            raise EmulationError("unknown instruction", instruction.line, instruction.text)
        taken = CONDITIONS[condition](waves)
        if taken.all():
            waves.pc = target
            return []
        if not taken.any():
            return []
        apart = waves.select(taken, target)
        rest = waves.select(~taken, waves.pc)
        waves.__dict__.update(rest.__dict__)
        return [apart]


def _check_registers(
    waves: Waves, program: Program, instruction: Instruction, operation: Operation
) -> None:
    """Raises EmulationError for a register that the kernel has not asked for."""
    files = {"v": waves.vector, "a": waves.accumulation, "s": waves.scalar}
    for register in (*operation.writes, *(read.register for read in operation.reads)):
        last, count = register.index + register.count - 1, len(files[register.bank])
        if register.bank == "s" and program.scalar_registers <= last <= LAST_SCALAR:
            raise EmulationError(
                f"uses s{last}, but the kernel asks for {program.scalar_registers} such registers: "
                "see `.amdhsa_next_free_sgpr`",
                instruction.line, instruction.text, "register",
            )  # fmt: skip
        if last >= count:
            raise EmulationError(
                f"uses {register.bank}{last}, but the kernel asks for {count} such registers: "
                "see `.amdhsa_next_free_vgpr` and `.amdhsa_accum_offset`",
                instruction.line, instruction.text, "register",
            )  # fmt: skip
