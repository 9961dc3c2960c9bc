"""Which workgroups of a launch have work: some kernels end where there is none for a workgroup.

Rows that are dealt out at run time, such as those of experts, need a grid for the most tiles that
there may be. Those workgroups that find no rows end ahead of all matrix instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.error import Fault
from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.machine.control import branch_target
from mfmadsl.emulator.machine.launch import Launch, Load, start_waves
from mfmadsl.emulator.machine.mode import machine_of
from mfmadsl.emulator.machine.scheduler import Scheduler
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.profiler.main_loop import is_matrix
from mfmadsl.emulator.run import portions
from mfmadsl.emulator.text.assembly import Instruction, Program

MOST = 1 << 18
"""Workgroups of a launch that are asked: of more all count as having work."""


def working_groups(launch: Launch, load: Load, budget: int) -> npt.NDArray[np.int64]:
    """The workgroups that come to a matrix instruction, or all where no branch leads past all.

    They are run up to there. Where none comes to one, all of them count.
    """
    every = np.arange(launch.groups)
    program = launch.program
    places = [n for n, each in enumerate(program.instructions) if is_matrix(each)]
    if not places or not _may_be_passed(program, places) or launch.groups > MOST:
        return every
    loaded, reached = load(), _Reached(places, launch.groups)
    compile_one = partial(compile_instruction, machine=machine_of(program, launch.trusted))
    scheduler = Scheduler(_up_to(program, places), budget, compile_one)
    with np.errstate(all="ignore"):
        for chosen in portions(launch, every):
            waves, _ = start_waves(launch, loaded, chosen)
            waves.watch = reached
            scheduler.run(waves, reached)
    found = np.flatnonzero(reached.groups)
    return found if len(found) else every


def _may_be_passed(program: Program, places: Sequence[int]) -> bool:
    """Whether a branch ahead of the first of some places leads to behind the last."""
    targets = (branch_target(program, each) for each in program.instructions[: places[0]])
    return any(target is not None and target > places[-1] for target in targets)


def _up_to(program: Program, places: Sequence[int]) -> Program:
    """A program that ends at any of some places."""
    instructions = list(program.instructions)
    for place in places:
        instructions[place] = replace(
            instructions[place], name="s_endpgm", operands=(), modifiers={}
        )
    return replace(program, instructions=tuple(instructions))


class _Reached:
    """Watches waves, and keeps which workgroups come to one of some places of the program."""

    def __init__(self, places: Sequence[int], groups: int) -> None:
        self.groups = np.zeros(groups, bool)
        self._places = frozenset(places)

    def passes(self, waves: Waves, instruction: Instruction) -> None:
        if waves.pc - 1 in self._places:
            self.groups[waves.position.groups[waves.workgroup]] = True

    def before(self, *_: Any) -> None: ...
    def after(self, *_: Any) -> None: ...
    def barrier(self, groups: Sequence[Waves]) -> None: ...
    def loads(self, *_: Any) -> None: ...
    def fetches(self, *_: Any) -> None: ...
    def stores(self, *_: Any) -> None: ...
    def updates(self, *_: Any) -> None: ...
    def fills(self, *_: Any) -> None: ...
    def clears(self, *_: Any) -> None: ...
    def disputed(self, *_: Any) -> None: ...
    def scalar_loads(self, *_: Any) -> None: ...
    def collects(self, waves: Waves, fault: Fault) -> bool:
        return False
