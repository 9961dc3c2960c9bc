"""Which workgroups of a launch have work: some kernels end where there is none for a workgroup.

Rows that are dealt out at run time, such as those of experts, need a grid for the most tiles that
there may be. Those workgroups that find no rows end ahead of the main loop.
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
from mfmadsl.emulator.profiler.main_loop import main_loop
from mfmadsl.emulator.run import portions
from mfmadsl.emulator.text.assembly import Instruction, Program

MOST = 1 << 18
"""Workgroups of a launch that are asked: of more all count as having work."""


def working_groups(launch: Launch, load: Load, budget: int) -> npt.NDArray[np.int64]:
    """The workgroups that reach the main loop, or all where no branch leads past it.

    They are run up to that loop. Where none reaches it, all of them count.
    """
    every = np.arange(launch.groups)
    program = launch.program
    loop = main_loop(program, [1] * len(program.instructions))
    if loop is None or not _may_be_passed(program, loop) or launch.groups > MOST:
        return every
    loaded, reached = load(), _Reached(loop.start, launch.groups)
    compile_one = partial(compile_instruction, machine=machine_of(program, launch.trusted))
    scheduler = Scheduler(_up_to(program, loop.start), budget, compile_one)
    with np.errstate(all="ignore"):
        for chosen in portions(launch, every):
            waves, _ = start_waves(launch, loaded, chosen)
            waves.watch = reached
            scheduler.run(waves, reached)
    found = np.flatnonzero(reached.groups)
    return found if len(found) else every


def _may_be_passed(program: Program, loop: range) -> bool:
    """Whether a branch ahead of a loop leads to behind it."""
    targets = (branch_target(program, each) for each in program.instructions[: loop.start])
    return any(target is not None and target >= loop.stop for target in targets)


def _up_to(program: Program, place: int) -> Program:
    """A program that ends at a place."""
    end = replace(program.instructions[place], name="s_endpgm", operands=(), modifiers={})
    before, after = program.instructions[:place], program.instructions[place + 1 :]
    return replace(program, instructions=(*before, end, *after))


class _Reached:
    """Watches waves, and keeps which workgroups reach a place of the program."""

    def __init__(self, place: int, groups: int) -> None:
        self.groups = np.zeros(groups, bool)
        self._place = place

    def passes(self, waves: Waves, instruction: Instruction) -> None:
        if waves.pc - 1 == self._place:
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
