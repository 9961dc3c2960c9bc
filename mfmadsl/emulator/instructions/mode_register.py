"""Instructions on hardware registers (CDNA3 ISA, section 4.2 and S_GETREG_B32)."""

from __future__ import annotations

import re

import numpy as np

from mfmadsl.emulator.error import OperandError
from mfmadsl.emulator.machine.aperture import PRIVATE, SHARED
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import Operation, reads_of
from mfmadsl.emulator.machine.vector_mode import INDEXES, SKIPS
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import MODE, Literal, check_source, check_target

MODE_INSTRUCTIONS = ("s_setreg_b32", "s_setreg_imm32_b32", "s_getreg_b32")

_HARDWARE_REGISTER = re.compile(r"hwreg\(HW_REG_(MODE|SH_MEM_BASES)(?:, *(\d+), *(\d+))?\)")
_APERTURES = np.uint32(SHARED | PRIVATE >> 16)
"""The upper halves of the high words of both apertures: of the LDS, and below of scratch memory."""


_MODE_FIELDS = 0x3FF | INDEXES | SKIPS
"""Bits of MODE that say how to round, flush and clamp: here they are known before a kernel runs.

So are those of vector instructions, but for instructions of their own.
"""


def compile_mode(instruction: Instruction, machine: Machine) -> Operation | None:
    """What accesses bits of the MODE register, whose name the parser leaves in a modifier."""
    match = _HARDWARE_REGISTER.fullmatch(instruction.modifiers.get("hwreg", ""))
    if not match or set(instruction.modifiers) != {"hwreg"}:
        return None
    register, low, width = match[1], int(match[2] or 0), int(match[3] or 32)
    if not 1 <= width <= 32 - low:
        raise OperandError("a field of 32 bits")
    mask = np.uint32(((1 << width) - 1) << low)
    (operand,) = instruction.taking(1)
    if instruction.name == "s_getreg_b32":
        target = check_target(operand, 1, "s")

        def read(waves: Waves) -> None:
            value = waves.scalar[MODE] if register == "MODE" else np.full(waves.count, _APERTURES)
            waves.write_scalar(target, (value & mask) >> np.uint32(low))

        return Operation(read, "salu", (), (target,))
    if register != "MODE":
        raise OperandError("it is read only")
    check_source(operand, "u32", "s")
    fixed = int(mask) & _MODE_FIELDS
    if fixed and not (
        isinstance(operand, Literal)
        and (operand.bits(32, floating=False) << low ^ machine.mode) & fixed == 0
    ):
        raise OperandError("the mode changes while the kernel runs")

    def write(waves: Waves) -> None:
        value = waves.read_scalar(operand, "u32") << np.uint32(low) & mask
        waves.scalar[MODE] = waves.scalar[MODE] & ~mask | value

    return Operation(write, "salu", reads_of(operand))
