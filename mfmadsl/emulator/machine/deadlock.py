"""Waves that wait for one another, or for what nobody does: who they are, and what they look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.error import EmulationError, Fault
from mfmadsl.emulator.machine.bits import Mask
from mfmadsl.emulator.machine.executor import Executor
from mfmadsl.emulator.machine.memory import Addresses, ByteStore
from mfmadsl.emulator.machine.recurrence import Recurrence
from mfmadsl.emulator.machine.wave import AccessWatch, Waves
from mfmadsl.emulator.machine.width import Width
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Register

_MOST_TURNS = 1 << 12  # to go once round a loop: more than any has that is found to be one
_MOST_OTHERS = 4  # kinds of waves that wait as well


_SCALAR, _LDS, _MEMORY = range(3)  # what tells the least of what a wave waits for comes first


@dataclass(frozen=True)
class _Look:
    """What a wave in a loop reads: where, and by which instruction."""

    rank: int
    instruction: Instruction
    place: str
    value: int
    writer: str
    lane: int | None


class _Looks(AccessWatch):
    """Watches waves in a loop: `found` has what each has read last, by its number, and of the LDS
    only if it reads no memory: there waves tell one another what one of them has read."""

    def __init__(self, executor: Executor, others: AccessWatch | None) -> None:
        """`others` have watched the waves until now."""
        self._others = others
        self.found: dict[int, _Look] = {}
        self._instructions = executor.program.instructions

    def loads(
        self, waves: Waves, store: ByteStore, offsets: Addresses, target: Register, width: Width,
        mask: Mask | None,
    ) -> None:  # fmt: skip
        """Note where the first lane of each wave reads."""
        if store is waves.scratch:
            return
        lanes = waves.lanes_of(mask)
        ends = np.cumsum(lanes.sum(axis=1))
        flat = offsets.reshape(-1)
        for wave in np.flatnonzero(lanes.any(axis=1)):
            first = int(ends[wave] - lanes[wave].sum())
            self._note(waves, int(wave), store, int(flat[first]), int(np.argmax(lanes[wave])))

    def updates(
        self, waves: Waves, store: ByteStore, offsets: Addresses, source: Register, width: Width,
        mask: Mask | None,
    ) -> None:  # fmt: skip
        """Note where the first lane of each wave reads and writes."""
        self.loads(waves, store, offsets, source, width, mask)

    def scalar_loads(self, waves: Waves, offsets: Addresses, target: Register) -> None:
        """Note where waves read that look at nothing else, such as pointers."""
        for wave, offset in enumerate(offsets):
            self._note(waves, wave, waves.memory, int(offset), None)

    def scalar_stores(
        self, waves: Waves, chosen: npt.NDArray[np.int64], offsets: Addresses, words: int,
        updates: bool,
    ) -> None:  # fmt: skip
        """Note where a scalar atomic reads."""
        if updates:
            for wave, offset in zip(chosen, offsets, strict=True):
                self._note(waves, int(wave), waves.memory, int(offset), None)

    def collects(self, waves: Waves, fault: Fault) -> bool:
        """Whatever is at fault has been told before."""
        return True

    def _note(
        self, waves: Waves, wave: int, store: ByteStore, offset: int, lane: int | None
    ) -> None:
        in_lds = store is waves.lds
        rank = _LDS if in_lds else _SCALAR if lane is None else _MEMORY
        known = self.found.get(int(waves.index[wave]))
        if known is not None and known.rank > rank:
            return
        place = f"address {offset % waves.lds.stride:#x} of LDS" if in_lds else (
            waves.memory.describe(offset))  # fmt: skip
        value = int(store.load_words(np.array([offset]), 1)[0, 0])
        writer = self._others.writer(waves, store, offset) if self._others else ""
        look = _Look(rank, self._instructions[waves.pc - 1], place, value, writer, lane)
        self.found[int(waves.index[wave])] = look


@dataclass(frozen=True)
class Standstill:
    """All waves of a launch that have not ended wait, in loops or at barriers. `left` workgroups
    have not started, for which the chip has no room."""

    in_loop: Sequence[Waves]
    at_barrier: Sequence[Waves]
    left: int
    recurrences: Sequence[Recurrence]

    def told(self, executor: Executor) -> EmulationError:
        """The error that says which wave waits for what, and who else does."""
        first = min(self.in_loop, key=lambda group: (group.portion, int(group.index[0])))
        # Once round their loops, in which they change nothing.
        looks = {id(group): self._looks(group, executor) for group in self.in_loop}
        wave = int(first.index[0])
        position = first.position.of(wave)
        look = looks[id(first)].get(wave)
        if look is None:
            place = executor.program.instructions[first.pc]
            message = "goes round in a loop for ever, and looks at nothing that could end it"
            fault = Fault("deadlock", message, place.line, place.text, *position)
            return EmulationError.of(fault)
        others = self._others([look for each in looks.values() for look in each.values()], executor)
        message = (
            f"waits in a loop for {look.place}: it is {look.value:#x}{look.writer}, and no wave "
            f"is left that could change it; {others}"
        )
        told = look.instruction
        fault = Fault("deadlock", message, told.line, told.text, *position, look.lane)
        return EmulationError.of(fault)

    def _looks(self, group: Waves, executor: Executor) -> dict[int, _Look]:
        watch = _Looks(executor, group.watch)
        group.watch, group.steps = watch, 0
        parts, recurrence = [group.select(np.ones(group.count, np.bool_), group.pc)], (
            self.recurrences[group.portion])  # fmt: skip
        at_barrier: list[Waves] = []
        for _ in range(_MOST_TURNS):
            if not parts:
                parts, at_barrier = at_barrier, []  # if not all are there, others have been
            if not parts:
                break
            part = parts.pop()
            stopped, split = executor.advance(part, None)
            if stopped == "barrier":
                at_barrier.append(part)
            for each in split if stopped in ("end", "barrier") else [part, *split]:
                again = recurrence.find(each)
                if not again.all():
                    parts.append(each.select(~again, each.pc))
        return watch.found

    def _others(self, looks: Sequence[_Look], executor: Executor) -> str:
        """Who else waits, and for what."""
        waiting = Counter(f"in line {look.instruction.line} for {look.place}" for look in looks)
        if len(waiting) > _MOST_OTHERS:
            waiting = Counter(f"in line {look.instruction.line}" for look in looks)
        for group in self.at_barrier:
            line = executor.program.instructions[group.pc - 1].line
            waiting[f"at the barrier in line {line}"] += group.count
        told = [f"{_waves(count)} {where}" for where, count in waiting.most_common(_MOST_OTHERS)]
        more = sum(waiting.values()) - sum(n for _, n in waiting.most_common(_MOST_OTHERS))
        if more:
            told.append(f"{_waves(more)} elsewhere")
        text = "there wait " + ", ".join(told)
        if self.left:
            text += f", and {self.left} workgroups for room on the chip"
        return text


def _waves(count: int) -> str:
    return f"{count} wave{'s' * (count != 1)}"
