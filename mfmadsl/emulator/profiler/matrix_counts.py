"""How much each workgroup of a launch does, in matrix instructions.

Rows that are dealt out at run time, such as those of experts, need a grid for the most tiles that
there may be: workgroups that find no rows end ahead of all matrix instructions. Those of a causal
attention have a loop each of another length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.machine.executor import Executor
from mfmadsl.emulator.machine.launch import Launch, Load, start_waves
from mfmadsl.emulator.machine.mode import machine_of
from mfmadsl.emulator.machine.scheduler import run_together
from mfmadsl.emulator.machine.watch import Watch
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.machine.workgroups import portions
from mfmadsl.emulator.profiler.control_slice import control_slice
from mfmadsl.emulator.profiler.main_loop import is_matrix
from mfmadsl.emulator.profiler.record import Trace
from mfmadsl.emulator.text.assembly import Instruction, Program

MOST = 1 << 18
"""Workgroups of a launch that are asked: of more all count as alike."""

_TICKS = 1 << 13  # each of a millisecond, where many waves run


def matrix_counts(launch: Launch, load: Load, budget: int) -> npt.NDArray[np.int64]:
    """How many matrix instructions each workgroup executes, those of its waves added up.

    All have 1 where they are alike, or cannot be told apart by what decides on their branches.
    Only that is run, so that it costs little; where it would cost much, or faults for what the
    rest would have stored, they are not told apart.
    """
    alike = np.ones(launch.groups, np.int64)
    program = launch.program
    compile_one = partial(compile_instruction, machine=machine_of(program, launch.trusted))
    decisive = control_slice(program, compile_one)
    if decisive is None or not decisive.varies or not decisive.matrix or launch.groups > MOST:
        return alike
    loaded, counts = load(), _Counts(decisive.matrix, launch.groups)
    executor = Executor(decisive.program, budget, compile_one)
    executor.tick = _Patience().tick
    try:
        with np.errstate(all="ignore"):
            for chosen in portions(launch, np.arange(launch.groups)):
                waves, _ = start_waves(launch, loaded, chosen)
                run_together(executor, waves, counts)
    except EmulationError:
        return alike
    return counts.of_groups if counts.of_groups.any() else alike


def are_confirmed(counts: npt.NDArray[np.int64], program: Program, traces: Sequence[Trace]) -> bool:
    """Whether all count as alike, or workgroups of which all was run have executed what is counted.

    They have not where what decides on branches is stored by the kernel itself.
    """
    if (counts == 1).all():
        return True
    matrix = [is_matrix(each) for each in program.instructions]
    executed: Counter[int] = Counter()
    for trace in traces:
        executed[trace.group] += sum(matrix[place] for place in trace.places)
    return all(counts[group] == count for group, count in executed.items())


class _Patience:
    """Ends what takes too many of an executor's ticks."""

    def __init__(self) -> None:
        self._left = _TICKS

    def tick(self) -> None:
        """Raises EmulationError when there have been too many."""
        self._left -= 1
        if not self._left:
            raise EmulationError("too much decides on branches")


class _Counts(Watch):
    """Watches waves, and counts for each workgroup what stands at the places that it passes."""

    def __init__(self, weights: Mapping[int, int], groups: int) -> None:
        self.of_groups = np.zeros(groups, np.int64)
        self._weights = weights

    def passes(self, waves: Waves, instruction: Instruction) -> None:
        if weight := self._weights.get(waves.pc - 1):
            np.add.at(self.of_groups, waves.position.groups[waves.workgroup], weight)
