"""Modes in which vector instructions do something else: nothing, or on registers that M0 chooses.

Source: CDNA3 ISA, section 4.2 (MODE: VSKIP and GPR_IDX_EN) and chapter 12, S_SETVSKIP and
S_SET_GPR_IDX_ON.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.machine.bits import Array
from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import INDEXED, M0, MODE, Operand, Register

INDEXES, SKIPS = 1 << 27, 1 << 28
"""Bits of MODE."""
OFFSET, FIRST_OPERAND = 0xFF, 12
"""What M0 is, while it is added: a number of registers, and a bit for each operand."""
INDEX_BITS = OFFSET | 0xF << FIRST_OPERAND
VECTOR_UNITS = frozenset({"valu", "matrix", "lds", "vmem", "flat"})
INDEXED_UNITS = frozenset({"valu", "matrix"})
SETS_VECTOR_MODE = frozenset({
    "s_setvskip", "s_set_gpr_idx_on", "s_set_gpr_idx_off", "s_set_gpr_idx_idx",
    "s_set_gpr_idx_mode",
})  # fmt: skip


def vector_modes(waves: Waves) -> Array:
    """The mode of each wave's vector instructions, as one number; usually 0."""
    mode = waves.scalar[MODE] & np.uint32(INDEXES | SKIPS)
    index = waves.scalar[M0] & np.uint32(INDEX_BITS)
    return np.where(mode & np.uint32(INDEXES), mode | index, mode)


def common_mode(waves: Waves) -> int:
    """The mode of all of the waves; -1 where they have several."""
    modes = vector_modes(waves)
    return int(modes[0]) if (modes == modes[0]).all() else -1


def indexed(instruction: Instruction, operation: Operation, mode: int) -> Instruction:
    """The instruction on the registers that M0 chooses.

    Raises EmulationError for one of which it is not known which operands those are.
    """
    if not operation.indexable:
        raise EmulationError("nobody says here which of its registers M0 is added to")
    chosen = [INDEXED[i] for i in range(len(INDEXED)) if mode >> FIRST_OPERAND + i & 1]
    target, *sources = instruction.operands
    moved = [_moved(target, mode & OFFSET if "DST" in chosen else 0)]
    for number, source in enumerate(sources):
        moved.append(_moved(source, mode & OFFSET if f"SRC{number}" in chosen else 0))
    return replace(instruction, operands=tuple(moved))


def _moved(operand: Operand, by: int) -> Operand:
    if not isinstance(operand, Register) or operand.bank != "v":
        return operand
    return replace(operand, index=operand.index + by)
