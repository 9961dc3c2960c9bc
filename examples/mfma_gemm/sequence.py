"""The main loop's instructions, folded for people, before a step and after it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from mfmadsl.emulator.machine.control import branch_target
from mfmadsl.emulator.text.assembly import Instruction, parse_assembly

_MOST = 4  # kinds of instructions in what is repeated
_COUNTER = re.compile(r"(\w+cnt)\((\d+)\)")


def main_loop(assembly: str) -> list[Instruction]:
    """The instructions of the innermost loop that has most matrix instructions.

    A persistent kernel's loop over its tiles is around it. All of the kernel if it has no loop.
    """
    program = parse_assembly(assembly)
    instructions = program.instructions
    loops = []
    for place, instruction in enumerate(instructions):
        start = branch_target(program, instruction)
        if start is not None and start <= place and _products(instructions[start : place + 1]):
            loops.append(range(start, place + 1))
    inner = [a for a in loops if not any(b != a and b[0] in a and b[-1] in a for b in loops)]
    bodies = [[instructions[place] for place in loop] for loop in inner]
    return max(bodies, key=_products, default=list(instructions))


def _products(body: Sequence[Instruction]) -> int:
    return sum(i.name.startswith("v_mfma") for i in body)


@dataclass(frozen=True)
class Run:
    """Instructions of one name that follow each other, `least` to `most` of them.

    Of waits `counters` has, by name, the numbers that they wait for, in their order.
    """

    name: str
    least: int
    most: int
    counters: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @property
    def kind(self) -> tuple[str, tuple[str, ...]]:
        """What has to be alike for two runs to be told as one."""
        return self.name, tuple(name for name, _ in self.counters)

    def __str__(self) -> str:
        if self.name == "s_waitcnt":
            return " ".join([self.name, *(f"{name}({_told(at)})" for name, at in self.counters)])
        if self.name == "s_barrier":
            return self.name
        count = f"{self.least}" if self.least == self.most else f"{self.least}-{self.most}"
        return f"{count} {self.name}"


def _told(numbers: Sequence[int]) -> str:
    different = list(dict.fromkeys(numbers))
    return str(different[0]) if len(different) == 1 else f"{different[0]}..{different[-1]}"


def short(body: Sequence[Instruction]) -> list[str]:
    """A loop with runs of alike instructions as one line, and what is repeated told once.

    Scalar instructions but waits and barriers, most of them of addresses, are counted at the end.
    """
    told = [i for i in body if _is_told(i)]
    lines = _folded(_runs(told))
    scalar = len(body) - len(told)
    return [*lines, f"{scalar} scalar" if scalar else "nothing scalar"]


def _is_told(instruction: Instruction) -> bool:
    return not instruction.name.startswith("s_") or instruction.name in ("s_waitcnt", "s_barrier")


def _runs(body: Sequence[Instruction]) -> list[Run]:
    runs: list[Run] = []
    for instruction in body:
        if instruction.name == "s_waitcnt":
            found = _COUNTER.findall(instruction.text)
            counters = tuple((name, (int(number),)) for name, number in found)
            runs.append(Run(instruction.name, 1, 1, counters))
        elif runs and runs[-1].name == _name(instruction) != "s_barrier":
            runs[-1] = Run(runs[-1].name, runs[-1].least + 1, runs[-1].most + 1)
        else:
            runs.append(Run(_name(instruction), 1, 1))
    return runs


def _name(instruction: Instruction) -> str:
    """That of a load into the LDS is not that of one into registers."""
    return instruction.name + (" lds" if "lds" in instruction.modifiers else "")


def _folded(runs: Sequence[Run]) -> list[str]:
    """The runs as lines, where a group of them that follows itself is told once."""
    lines: list[str] = []
    place = 0
    while place < len(runs):
        length, times = _repeated(runs, place)
        group = [
            _together(runs[place + n : place + length * times : length]) for n in range(length)
        ]
        if times > 1:
            lines.append(f"{times} times")
        lines += [f"  {run}" if times > 1 else f"{run}" for run in group]
        place += length * times
    return lines


def _repeated(runs: Sequence[Run], place: int) -> tuple[int, int]:
    """How long the group is that starts there, and how often it comes: what saves most lines."""
    best = 1, 1
    for length in range(2, _MOST + 1):
        kinds = [run.kind for run in runs[place : place + length]]
        times = 1
        while [
            r.kind for r in runs[place + times * length : place + (times + 1) * length]
        ] == kinds:
            times += 1
        if length * (times - 1) > best[0] * (best[1] - 1) + 1:
            best = length, times
    return best


def _together(runs: Sequence[Run]) -> Run:
    """Several runs of one kind as one."""
    counters = tuple(
        (name, tuple(number for run in runs for number in run.counters[n][1]))
        for n, (name, _) in enumerate(runs[0].counters)
    )
    least, most = min(run.least for run in runs), max(run.most for run in runs)
    return Run(runs[0].name, least, most, counters)


def side_by_side(before: Sequence[str], after: Sequence[str], titles: tuple[str, str]) -> list[str]:
    """Two columns of lines, each with its title."""
    width = max(len(line) for line in (titles[0], *before))
    rows = [titles, ("-" * len(titles[0]), "-" * len(titles[1]))]
    rows += zip_longest(before, after, fillvalue="")
    return [f"{left:<{width}}   {right}".rstrip() for left, right in rows]
