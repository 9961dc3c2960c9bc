"""Which lines workgroups share that a whole chip has at once: a look at their first steps.

All workgroups of a round are started, and stopped when they have gone twice through the loop that
the kernel spends its time in: neighbours share in each step what they share in all, and who is at
an edge reads less in each. Where all are alike the first round tells what the others do.
Matrix instructions, of which no address comes, are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.machine.bits import Mask
from mfmadsl.emulator.machine.executor import Executor
from mfmadsl.emulator.machine.launch import Launch, Load, LoadedProgram, start_waves
from mfmadsl.emulator.machine.memory import Addresses, ByteStore, Segment
from mfmadsl.emulator.machine.mode import machine_of
from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.scheduler import run_together
from mfmadsl.emulator.machine.watch import Watch
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.machine.width import Width
from mfmadsl.emulator.machine.workgroups import portions
from mfmadsl.emulator.profiler.record import distinct
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Register
from mfmadsl.error import MfmadslError
from mfmadsl.model.traffic import Sharing

_TURNS = 2
_OPERANDS = 16  # at most, of which each is read about as often
_LINE_BITS = 40  # of a number that is a line's, with that of a workgroup or a die above it

_Numbers = npt.NDArray[np.int64]


class ArgumentLines(NamedTuple):
    """The first line of an argument, how its lines are shared, and how many of them a workgroup
    reads on the average, of what those read that are known in full."""

    first: int
    sharing: Sharing
    average: float


@dataclass(frozen=True)
class FirstSteps:
    """What the first steps of some rounds tell.

    `arguments` has what is read of each argument, in their order: a row that all workgroups go
    through ahead of their loop says nothing of what the loop reads.
    `footprint` are the bytes of those arguments that are read. `average` is what a workgroup reads
    on the average, of what the first ones do: those at an edge read less. `inside` is how much of
    its tile lies within the matrices on the average: what it reads of an argument, of the most that
    any reads of it, and that of the argument of which it is the least. Of an edge that all of them
    reach over nothing is seen, nor of that of K.
    """

    sharing: Sharing
    arguments: tuple[ArgumentLines, ...]
    footprint: int
    average: float
    inside: float


def first_steps(
    launch: Launch,
    load: Load,
    rounds: Sequence[_Numbers],
    profiled: Sequence[int],
    dies: int,
    line_bytes: int,
    loop_end: int | None,
    budget: int,
) -> FirstSteps:
    """Look at some `rounds` of a launch, of which the workgroups `profiled` are known in full.

    Workgroups go to the dies in turn. `loop_end` is the place of the branch that ends the main
    loop; without it the workgroups run to their ends.
    """
    loaded = load()
    starts = np.array([loaded.memory.offset_of(segment) for segment in loaded.memory.segments])
    seen = []
    for groups in rounds:
        seen.append(lines := _Lines(line_bytes, loop_end, starts, groups))
        _go_through(launch, loaded, groups, lines, budget)
    of_rounds = [np.concatenate([np.zeros(0, np.int64), *lines.asked]) for lines in seen]
    asked, groups = np.concatenate(of_rounds), np.concatenate(rounds)
    firsts = sorted((starts // line_bytes).tolist())
    used = distinct(_line(asked)) * line_bytes
    read = sum(_size_if_used(s, loaded.memory.offset_of(s), used) for s in loaded.memory.segments)
    times = int(np.count_nonzero(np.isin(groups, profiled))) / len(groups)
    arguments = []
    for first, each in zip(firsts, _of_arguments(of_rounds, firsts), strict=True):
        arguments.append(
            ArgumentLines(first, _sharing(each, dies), _average(each, profiled, times))
        )
    return FirstSteps(
        _sharing(of_rounds, dies),
        tuple(arguments),
        read,
        _average(of_rounds, profiled, times),
        _inside(
            np.concatenate([lines.read_bytes for lines in seen], axis=1),
            np.concatenate([lines.loads_of for lines in seen]),
        ),
    )


def _go_through(
    launch: Launch, loaded: LoadedProgram, groups: _Numbers, lines: _Lines, budget: int
) -> None:
    """Have the workgroups of a round ask for the `lines` of their first steps."""
    machine = machine_of(launch.program, launch.trusted)
    for chosen in portions(launch, groups):
        executor = Executor(launch.program, budget, partial(_compile_addresses, machine=machine))
        waves, _ = start_waves(launch, loaded, chosen)
        waves.watch = lines
        lines.start(waves.count)
        try:
            with np.errstate(all="ignore"):
                run_together(executor, waves, lines)
        except _EnoughIterations:
            pass
        except EmulationError as error:
            if error.fault.kind != "deadlock":  # what waits for workgroups of later rounds
                raise
        lines.end()


def _line(asked: _Numbers) -> _Numbers:
    """The lines, without who asks for them."""
    return asked & (1 << _LINE_BITS) - 1


def _sharing(of_rounds: Sequence[_Numbers], dies: int) -> Sharing:
    """How many of the lines are distinct in each round, of those that its workgroups ask for; all
    of none."""
    if not (count := sum(map(len, of_rounds))):
        return Sharing(1.0, 1.0)
    of_dies = of_chip = 0
    for asked in of_rounds:
        line = _line(asked)
        of_dies += len(distinct((asked >> _LINE_BITS) % dies << _LINE_BITS | line))
        of_chip += len(distinct(line))
    return Sharing(of_dies / count, of_chip / count)


def _of_arguments(
    of_rounds: Sequence[_Numbers], firsts: Sequence[int]
) -> Iterator[Sequence[_Numbers]]:
    """The lines of each argument that are asked for in each round, by the first line of each."""
    of_which = [np.searchsorted(firsts, _line(asked), side="right") - 1 for asked in of_rounds]
    for number in range(len(firsts)):
        pairs = zip(of_rounds, of_which, strict=True)
        yield [asked[which == number] for asked, which in pairs]


def _average(of_rounds: Sequence[_Numbers], profiled: Sequence[int], times: float) -> float:
    """The lines that a workgroup asks for, of those that a profiled one does; of all workgroups the
    latter are so many `times`."""
    asked = np.concatenate(of_rounds)
    own = int(np.count_nonzero(np.isin(asked >> _LINE_BITS, profiled)))
    return len(asked) * times / own if own else 1.0


def _inside(read_bytes: _Numbers, loads: _Numbers) -> float:
    """The mean of how much of their tiles workgroups read.

    Those that execute another number of loads than most do something else, and what not all of the
    others read is no operand of a tile, nor what is little: they count in full.
    """
    if not loads.any():
        return 1.0
    alike = loads == np.bincount(loads).argmax()
    own = read_bytes[:, alike]
    of_all = own.sum(axis=1)
    own = own[(own > 0).all(axis=1) & (of_all * _OPERANDS >= of_all.sum())]
    shares = own / own.max(axis=1, keepdims=True)
    less = (1 - shares.min(axis=0, initial=1.0)).sum()
    return float(1 - less / len(loads))


def _size_if_used(segment: Segment, start: int, used: _Numbers) -> int:
    low, high = np.searchsorted(used, [start, start + segment.size])
    return segment.size if high > low else 0


def _compile_addresses(instruction: Instruction, machine: Any) -> Operation:
    operation = compile_instruction(instruction, machine=machine)
    return replace(operation, execute=_nothing) if operation.unit == "matrix" else operation


def _nothing(waves: Waves) -> None:
    """No address depends on what a matrix instruction would compute."""


class _EnoughIterations(MfmadslError):  # noqa: N818 (no error)
    """All waves have gone through the loop so often as they have to."""


class _Lines(Watch):
    """Watches waves and collects the lines of global memory that each workgroup reads.

    `read_bytes` are those that its lanes read of each argument, which start at `starts`, and
    `loads_of` counts the loads of its waves.
    """

    def __init__(
        self, line_bytes: int, loop_end: int | None, starts: _Numbers, groups: _Numbers
    ) -> None:
        self.asked: list[_Numbers] = []
        self.read_bytes = np.zeros((len(starts), len(groups)), np.int64)
        self.loads_of = np.zeros(len(groups), np.int64)
        self._starts, self._groups = starts, groups
        self._line_bytes, self._loop_end = line_bytes, loop_end
        self._new: list[_Numbers] = []
        self._left = 0

    def start(self, waves: int) -> None:
        self._new, self._left = [], _TURNS * waves

    def end(self) -> None:
        if self._new:
            self.asked.append(distinct(np.concatenate(self._new)))

    def _read(self, waves: Waves, offsets: Addresses, size: int, mask: Mask | None) -> None:
        lanes = waves.lanes_of(mask)
        owners = waves.position.groups[waves.workgroup]
        numbers = np.searchsorted(self._groups, owners)
        np.add.at(self.loads_of, numbers, 1)
        group = np.broadcast_to(owners[:, None], lanes.shape)[lanes]
        first = offsets.reshape(-1).astype(np.int64)
        for byte in (first, first + size - 1):
            self._new.append(distinct(group << _LINE_BITS | byte // self._line_bytes))
        argument = np.searchsorted(self._starts, first, side="right") - 1
        number = np.broadcast_to(numbers[:, None], lanes.shape)[lanes]
        place = argument * self.read_bytes.shape[1] + number
        counts = np.bincount(place, minlength=self.read_bytes.size)
        self.read_bytes += counts.reshape(self.read_bytes.shape) * size

    def passes(self, waves: Waves, instruction: Instruction) -> None:
        if waves.pc - 1 == self._loop_end:
            self._left -= waves.count
            if self._left <= 0:
                raise _EnoughIterations

    def loads(
        self, waves: Waves, store: ByteStore, offsets: Addresses, target: Register, width: Width,
        mask: Mask | None,
    ) -> None:  # fmt: skip
        if store is waves.memory:
            self._read(waves, offsets, width.size, mask)

    def fetches(self, waves: Waves, offsets: Addresses, width: Width, mask: Mask | None) -> None:
        self._read(waves, offsets, width.size, mask)
