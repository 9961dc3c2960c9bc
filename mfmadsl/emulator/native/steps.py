"""Instructions as steps of native code: which have any."""

from __future__ import annotations

from collections.abc import Callable

from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.native.division import describe_division
from mfmadsl.emulator.native.elementwise import describe_row
from mfmadsl.emulator.native.exchange import describe_exchange
from mfmadsl.emulator.native.form import NativeStep
from mfmadsl.emulator.native.global_memory import describe_buffer, describe_global
from mfmadsl.emulator.native.lds import describe_lds
from mfmadsl.emulator.native.masks import (
    describe_carry,
    describe_choice,
    describe_compare,
    describe_wide_sum,
)
from mfmadsl.emulator.native.matrix import describe_matrix
from mfmadsl.emulator.native.packed import describe_packed
from mfmadsl.emulator.native.scalar import describe_scalar
from mfmadsl.emulator.native.scalar_memory import describe_scalar_load
from mfmadsl.emulator.text.assembly import Instruction

Describe = Callable[[Instruction, Machine], NativeStep | None]
_VECTOR: tuple[Describe, ...] = (
    describe_row, describe_packed, describe_compare, describe_choice, describe_carry,
    describe_exchange, describe_wide_sum, describe_matrix, describe_division,
)  # fmt: skip
_DESCRIBERS: dict[str, tuple[Describe, ...]] = {
    "v": _VECTOR,
    "s": (describe_scalar, describe_scalar_load),
    "d": (describe_lds, describe_exchange),
    "g": (describe_global,),
    "b": (describe_buffer,),
}


def describe(instruction: Instruction, machine: Machine) -> NativeStep | None:
    """An instruction that the interpreter takes, as a step; None if it has no native code."""
    for describe_one in _DESCRIBERS.get(instruction.name[0], ()):
        step = describe_one(instruction, machine)
        if step is not None:
            return step
    return None
