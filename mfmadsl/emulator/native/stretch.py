"""Instructions that follow one another, as native code: one native call executes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.native.fields import RUN_WORD, SPLIT_WORD, STEP_WORDS
from mfmadsl.emulator.native.form import NativeStep
from mfmadsl.emulator.native.name import name_of
from mfmadsl.emulator.text.assembly import Instruction

Driver = Callable[[int, int, int], int]


@dataclass(frozen=True)
class Access:
    """What lanes do to the LDS, or to global memory, and how far that reaches there."""

    in_lds: bool
    stores: bool
    reach: int = 0


@dataclass(frozen=True)
class Part:
    """An instruction, which is without an operation if it only passes, as steps. `issued` says how
    many of its line came before, by counters; `accesses` are those that steps look at."""

    instruction: Instruction
    operation: Operation | None
    steps: tuple[NativeStep, ...]
    issued: Mapping[str, int] = field(default_factory=dict)
    accesses: tuple[Access, ...] = ()

    @property
    def loads_scalars(self) -> bool:
        """Whether it loads scalar registers from memory, which no access tells."""
        return any(step.form.writer == "scalar-load" for step in self.steps)

    @property
    def changes_exec(self) -> bool:
        """Whether it changes which lanes are active."""
        return any(step.changes_exec for step in self.steps)


@dataclass(frozen=True, eq=False)
class Stretch:
    """Parts from a place in a program on, as words for the driver; `starts` has the first step of
    each part, and behind them how many steps there are."""

    first: int
    parts: tuple[Part, ...]
    words: npt.NDArray[np.int64]
    starts: tuple[int, ...]
    driver: Driver
    kept: dict[str, Any] = field(default_factory=dict)
    """What those keep with it who look ahead."""

    @property
    def count(self) -> int:
        """How many instructions it has."""
        return len(self.parts)

    @cached_property
    def address(self) -> int:
        """Where its words are."""
        return int(self.words.ctypes.data)

    @cached_property
    def changes_scc(self) -> bool:
        """Whether it changes the scalar condition code."""
        return any(step.changes_scc for part in self.parts for step in part.steps)

    @cached_property
    def changes_exec(self) -> bool:
        """Whether it changes which lanes are active."""
        return any(part.changes_exec for part in self.parts)

    @cached_property
    def _numbers(self) -> npt.NDArray[np.int64]:
        return np.array(self.starts)

    @cached_property
    def accesses(self) -> tuple[tuple[int, Access, int], ...]:
        """The accesses that are looked at, by the places of their parts, with their numbers among
        those of the stretch that count like them."""
        found = []
        for place, part in enumerate(self.parts):
            for access in part.accesses:
                counter = "lgkmcnt" if access.in_lds else "vmcnt"
                number = part.issued.get(counter, 0) - self.parts[0].issued.get(counter, 0) + 1
                found.append((place, access, number))
        return tuple(found)

    def parts_before(self, step: int) -> int:
        """How many parts are complete where so many steps are."""
        if step == self.starts[-1]:
            return self.count
        return int(self._numbers.searchsorted(step, "right")) - 1

    def behind(self, count: int) -> Stretch:
        """The stretch without its first parts."""
        skipped = self.starts[count]
        starts = tuple(start - skipped for start in self.starts[count:])
        parts = self.parts[count:]
        return Stretch(self.first + count, parts, self.words[skipped:], starts, self.driver)


def stretch_of(
    parts: Sequence[Part], addresses: Mapping[str, int], driver: Driver, first: int = 0
) -> Stretch:
    """Parts as native code takes them; `addresses` has where the code of their forms is."""
    steps = [step for part in parts for step in part.steps]
    words = np.zeros((len(steps), STEP_WORDS), np.int64)
    for row, step in zip(words, steps, strict=True):
        assert len(step.values) < SPLIT_WORD
        row[0] = addresses[name_of(step.form)]
        row[1 : 1 + len(step.values)] = step.values
        row[SPLIT_WORD] = step.form.splits
    following = 0
    for row, step in zip(words[::-1], steps[::-1], strict=True):
        following = following + 1 if step.form.is_on_registers else 0
        row[RUN_WORD] = following
    starts = np.cumsum([0, *(len(part.steps) for part in parts)]).tolist()
    return Stretch(first, tuple(parts), words, tuple(starts), driver)
