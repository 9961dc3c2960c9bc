"""Instructions that switch vector instructions off, or let M0 choose their registers (CDNA3 ISA,
chapter 12: S_SETVSKIP, S_SET_GPR_IDX_ON, _OFF, _IDX and _MODE)."""

from __future__ import annotations

import re

import numpy as np

from mfmadsl.emulator.error import OperandError
from mfmadsl.emulator.machine.bits import Array
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import ALL_BITS, OperandRead, Operation, reads_of
from mfmadsl.emulator.machine.vector_mode import (
    FIRST_OPERAND,
    INDEXES,
    OFFSET,
    SETS_VECTOR_MODE,
    SKIPS,
)
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import (
    INDEXED,
    M0,
    MODE,
    Literal,
    Operand,
    Register,
    check_source,
    parse_integer,
)

_M0 = Register("s", M0, 1)
_MACRO = re.compile(r"gpr_idx\(([A-Z0-9, ]*)\)")
_OPERANDS = 0xF << FIRST_OPERAND


def compile_vector_mode(instruction: Instruction, machine: Machine) -> Operation | None:
    """What sets the mode of vector instructions, or None if it is something else."""
    del machine
    name = instruction.name
    if name not in SETS_VECTOR_MODE or set(instruction.modifiers) - {"gpr_idx"}:
        return None
    operands = list(instruction.operands)
    takes = {"s_setvskip": 2, "s_set_gpr_idx_on": 1, "s_set_gpr_idx_idx": 1}.get(name, 0)
    has_operands = name.endswith(("_on", "_mode"))
    indexes = _operands(instruction, operands, takes) if has_operands else None
    if len(operands) != takes or (instruction.modifiers and not has_operands):
        raise OperandError(f"it takes {takes} operands")
    for operand in operands:
        check_source(operand, "u32", "s")
    if name == "s_setvskip":
        return _skip(*operands)
    if name == "s_set_gpr_idx_off":
        return Operation(lambda waves: _set_mode(waves, INDEXES, np.uint32(0)), "salu")
    return _index(operands[0] if operands else None, indexes, enable=name.endswith("_on"))


def _operands(instruction: Instruction, operands: list[Operand], takes: int) -> int:
    """The bits that say which operands M0 is added to: `gpr_idx(SRC0,DST)`, or a number."""
    written = instruction.modifiers.get("gpr_idx")
    if written is not None:
        match = _MACRO.fullmatch(written)
        names = [each.strip() for each in match[1].split(",")] if match else ["?"]
        names = [] if names == [""] else names
        if set(names) - set(INDEXED) or len(set(names)) != len(names):
            raise OperandError(f"gpr_idx has {', '.join(INDEXED)}, not {written}")
        return sum(1 << INDEXED.index(each) for each in names)
    last = operands.pop() if len(operands) == takes + 1 else None
    number = parse_integer(last.text) if isinstance(last, Literal) else None
    if number is None or not 0 <= number < 1 << len(INDEXED):
        raise OperandError("gpr_idx(...) is missing")
    return number


def _skip(bits: Operand, place: Operand) -> Operation:
    """VSKIP = S0[S1[4:0]]: with it, vector instructions are not executed."""

    def execute(waves: Waves) -> None:
        shift = waves.read_scalar(place, "u32") & np.uint32(31)
        chosen = waves.read_scalar(bits, "u32") >> shift & np.uint32(1)
        _set_mode(waves, SKIPS, chosen * np.uint32(SKIPS))

    return Operation(execute, "salu", reads_of(bits, place))


def _index(source: Operand | None, operands: int | None, enable: bool) -> Operation:
    """M0[7:0] = S0[7:0] and M0[15:12] = the operands, as far as there are such."""
    mask = (OFFSET if source is not None else 0) | (_OPERANDS if operands is not None else 0)
    chosen = np.uint32((operands or 0) << FIRST_OPERAND)

    def execute(waves: Waves) -> None:
        number: Array = np.zeros(waves.count, np.uint32)
        if source is not None:
            number = waves.read_scalar(source, "u32") & np.uint32(OFFSET)
        waves.scalar[M0] = waves.scalar[M0] & np.uint32(ALL_BITS & ~mask) | number | chosen
        if enable:
            _set_mode(waves, INDEXES, np.uint32(INDEXES))

    reads = () if source is None else _low_bits(source)
    kept = OperandRead(_M0, ALL_BITS & ~mask, moved=True)
    return Operation(execute, "salu", (*reads, kept), (_M0,))


def _low_bits(source: Operand) -> tuple[OperandRead, ...]:
    return (OperandRead(source, OFFSET),) if isinstance(source, Register) else ()


def _set_mode(waves: Waves, mask: int, value: Array | np.uint32) -> None:
    waves.scalar[MODE] = waves.scalar[MODE] & np.uint32(ALL_BITS & ~mask) | value
