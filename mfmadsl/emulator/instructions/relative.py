"""Moves of scalar registers that M0 chooses (CDNA3 ISA, S_MOVRELS_B32 to S_MOVRELD_B64)."""

from __future__ import annotations

import re

import numpy as np

from mfmadsl.emulator.error import EmulationError, OperandError
from mfmadsl.emulator.machine.bits import Array
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import OperandRead, Operation, reads_of
from mfmadsl.emulator.machine.transfer import M0_REGISTER
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import VCC, Register, as_register, check_source, check_target

_NAME = re.compile(r"s_movrel(s|d)_b(32|64)")


def compile_relative(instruction: Instruction, machine: Machine) -> Operation | None:
    """What a move relative to M0 does, or None if it is something else.

    Which register it is shows when it executes: nobody asks whether its bits were written.
    """
    del machine
    found = _NAME.fullmatch(instruction.name)
    if found is None or instruction.modifiers:
        return None
    words = int(found[2]) // 32
    first, second = instruction.taking(2)
    target = check_target(first, words, "s")
    if found[1] == "d":
        check_source(second, f"b{found[2]}", "s")

        def write(waves: Waves) -> None:
            value = np.broadcast_to(waves.read_scalar(second, f"b{32 * words}"), (waves.count,))
            places = _places(waves, target)
            parts = np.ascontiguousarray(value).view(np.uint32).reshape(waves.count, words)
            for word in range(words):
                waves.scalar[places + word, np.arange(waves.count)] = parts[:, word]

        return Operation(write, "salu", (*reads_of(second), OperandRead(M0_REGISTER)), (target,))
    source = as_register(second)
    if source.bank != "s" or source.count != words:
        raise OperandError(f"its source is {words} scalar registers")

    def read(waves: Waves) -> None:
        places = _places(waves, source)
        for word in range(words):
            found = waves.scalar[places + word, np.arange(waves.count)]
            waves.scalar[target.index + word] = found

    return Operation(read, "salu", (OperandRead(M0_REGISTER),), (target,))


def _places(waves: Waves, register: Register) -> Array:
    """The register of each wave. Raises EmulationError where there is none for it."""
    places = register.index + waves.read_scalar(M0_REGISTER, "u32").astype(np.int64)
    if (places + register.count > VCC).any() or (places % register.count).any():
        bad = int(places[np.argmax(places)])
        raise EmulationError(f"M0 leads to s{bad}, and there is none such for it", kind="register")
    return np.asarray(places)
