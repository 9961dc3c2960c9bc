"""Instructions as steps of native code: which have any."""

from __future__ import annotations

from collections.abc import Callable

from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.native.elementwise import describe_row
from mfmadsl.emulator.native.form import Step
from mfmadsl.emulator.text.assembly import Instruction

Describe = Callable[[Instruction, Machine], Step | None]
_DESCRIBERS: tuple[Describe, ...] = (describe_row,)


def describe(instruction: Instruction, machine: Machine) -> Step | None:
    """An instruction that the interpreter takes, as a step; None if it has no native code."""
    for describe_one in _DESCRIBERS:
        step = describe_one(instruction, machine)
        if step is not None:
            return step
    return None
