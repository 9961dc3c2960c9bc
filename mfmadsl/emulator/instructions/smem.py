"""Scalar memory: words into scalar registers, one address a wave (CDNA3 ISA, chapter 8)."""

from __future__ import annotations

import re

import numpy as np

from mfmadsl.emulator.error import OperandError
from mfmadsl.emulator.machine.bits import Array, pair_of_words
from mfmadsl.emulator.machine.memory import AccessError
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import Operation, reads_of
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import (
    EXEC,
    M0,
    Literal,
    Operand,
    Register,
    check_registers,
    check_source,
    check_target,
    parse_integer,
)

_LOAD = re.compile(r"s_(buffer_)?load_dword(x2|x4|x8|x16|)")
SMEM_FLAGS = {"glc", "offset"}


def compile_smem(instruction: Instruction, machine: Machine) -> Operation | None:
    """What a scalar load does, or None if it is not one."""
    del machine
    match = _LOAD.fullmatch(instruction.name)
    if not match or set(instruction.modifiers) - SMEM_FLAGS:
        return None
    first, second, *rest = instruction.taking(2, 3)
    target = check_scalar_data(first, int(match[2][1:] or 1))
    base = check_registers(second, 4 if match[1] else 2, "s")
    offset = rest[0] if rest else Literal("0")
    constant = constant_offset(instruction, offset, signed=not match[1])
    load = _buffer_load if match[1] else _load
    reads = reads_of(base, offset)

    def execute(waves: Waves) -> None:
        load(waves, target, base, scalar_displacement(waves, offset, constant))

    return Operation(execute, "smem", reads, (target,))


def check_scalar_data(operand: Operand, count: int) -> Register:
    """Registers that scalar memory loads or stores (LLVM's assembler has neither EXEC nor M0
    there). Raises OperandError for others."""
    data = check_target(operand, count, "s")
    if not {M0, EXEC, EXEC + 1}.isdisjoint(data.indices):
        raise OperandError("scalar memory moves neither EXEC nor M0")
    return data


def constant_offset(instruction: Instruction, offset: Operand, signed: bool) -> np.uint64:
    """The offset that is a constant, alone or beside a register: of 21 bits with a sign, and for a
    buffer without one (CDNA3 ISA, section 13.1, SMEM; LLVM's assembler).

    Raises OperandError for any other.
    """
    value = instruction.signed_number("offset")
    if isinstance(offset, Literal):
        if "offset" in instruction.modifiers:
            raise OperandError("there are two constant offsets")
        given = parse_integer(offset.text)
        if given is None or offset.negate or offset.absolute:
            raise OperandError(f"the offset is a number, not {offset.text}")
        value = given
    else:
        check_source(offset, "u32", "s")
    lowest = -(1 << 20) if signed else 0
    if not lowest <= value < 1 << 20:
        raise OperandError(f"the offset is from {lowest} to {(1 << 20) - 1}, not {value}")
    return np.uint64(value % (1 << 64))


def scalar_displacement(waves: Waves, offset: Operand, constant: np.uint64) -> Array:
    """What is added to the base, in whole words."""
    total: Array = np.full(waves.count, constant)
    if isinstance(offset, Register):
        total = total + waves.read_scalar(offset, "u32")
    return whole_words(waves, total)


def whole_words(waves: Waves, addresses: Array) -> Array:
    """A part of an address, of which the last two bits do not count (CDNA3 ISA, section 8.2).

    Whoever watches is told where they are set: the chip gives another word than the one meant.
    """
    whole = addresses & ~np.uint64(3)
    if waves.watch is not None and (cut := np.broadcast_to(whole != addresses, waves.count)).any():
        wave = int(np.argmax(cut))
        odd = int(np.broadcast_to(addresses, waves.count)[wave]) & 3
        message = f"the address is {odd} bytes behind a word, from which the chip reads instead"
        waves.watch.misplaced(waves, message, wave)
    return whole


def _load(waves: Waves, target: Register, base: Operand, displacement: Array) -> None:
    address = whole_words(waves, waves.read_scalar(base, "u64")) + displacement
    offsets = reach_scalar(waves, address, np.arange(waves.count), 4 * target.count)
    if waves.watch is not None:
        waves.watch.scalar_loads(waves, offsets, target)
    for i, word in enumerate(waves.memory.load_words(offsets, target.count)):
        waves.scalar[target.index + i] = word


def reach_scalar(waves: Waves, addresses: Array, wave: Array, size: int) -> Array:
    """Offsets in global memory of what some waves access, of so many bytes."""
    addresses = np.broadcast_to(addresses, wave.shape)
    try:
        return waves.memory.offsets(addresses, size)
    except AccessError as error:
        waves.fault(error.kind, str(error), int(wave[error.bad][0]))
        first = waves.memory.segments[0].address  # to go on with something
        return waves.memory.offsets(np.where(error.bad, np.uint64(first), addresses), size)


def _buffer_load(waves: Waves, target: Register, base: Register, displacement: Array) -> None:
    """Load words through a descriptor; those beyond its size are 0."""
    low, high, size, _ = waves.scalar[base.index : base.index + 4]
    start = pair_of_words(low, high & np.uint32(0xFFFF))
    for i in range(target.count):
        at = np.broadcast_to(displacement + np.uint64(4 * i), (waves.count,))
        inside = at + np.uint64(4) <= size
        offsets = reach_scalar(waves, (start + at)[inside], np.flatnonzero(inside), 4)
        if waves.watch is not None:
            waves.watch.scalar_loads(waves, offsets, Register("s", target.index + i, 1))
        waves.scalar[target.index + i] = 0
        waves.scalar[target.index + i, inside] = waves.memory.load_words(offsets, 1)[0]
