"""Loads and stores of lanes beyond LDS: global, flat, buffer and scratch (CDNA3 ISA, 9 and 10)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mfmadsl.emulator.instructions.atomic import Update, find_memory_update, update_memory
from mfmadsl.emulator.instructions.buffer import compile_buffer
from mfmadsl.emulator.machine.aperture import access_flat
from mfmadsl.emulator.machine.bits import Array, Mask
from mfmadsl.emulator.machine.memory import Addresses, ByteStore
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import OperandRead, Operation, Unit, reads_of
from mfmadsl.emulator.machine.transfer import (
    M0_REGISTER,
    fetch_to_lds,
    load,
    move_scratch,
    reach_global,
    scratch_to_lds,
    store,
)
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.machine.width import WIDTHS, Width
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import AssemblySymbol, Operand, Register, check_registers

_MOVE = re.compile(r"(global|flat|scratch)_(load|store)_(\w+)")
_STORE = re.compile(r"(?:global|flat|buffer)_store_(\w+)")
_TO_LDS = re.compile(r"global_load_lds_(\w+)")
_SCRATCH_TO_LDS = re.compile(r"scratch_load_lds_(\w+)")
_ATOMIC = re.compile(r"(global|flat)_atomic_(\w+?)(_x2|_f32|_f64|_f16|_bf16)?")
CACHE_FLAGS = frozenset({"sc0", "sc1", "nt", "glc", "slc", "scc", "dlc"})


def compile_vmem(instruction: Instruction, machine: Machine) -> Operation | None:
    """What a memory instruction does, or None if it is not one of these."""
    name = instruction.name
    if name.startswith(("buffer_", "tbuffer_")):
        return compile_buffer(instruction, machine)
    if set(instruction.modifiers) - {"offset"} - CACHE_FLAGS:
        return None
    if match := _TO_LDS.fullmatch(name):
        width = WIDTHS.get(match[1])
        return _global_to_lds(instruction, width) if width else None
    if match := _SCRATCH_TO_LDS.fullmatch(name):
        width = WIDTHS.get(match[1])
        return _scratch_to_lds(instruction, width) if width else None
    if match := _MOVE.fullmatch(name):
        width = WIDTHS.get(match[3])
        move = _scratch if match[1] == "scratch" else _global
        return move(instruction, match[2] == "load", width) if width else None
    if match := _ATOMIC.fullmatch(name):
        update = find_memory_update(match[2], match[3])
        return _atomic(instruction, update) if update else None
    return None


def stored_bytes(instruction: Instruction) -> int | None:
    """Bytes that a lane stores in global memory at once; None if it does not store there."""
    match = _STORE.fullmatch(instruction.name)
    width = WIDTHS.get(match[1]) if match else None
    return width.size if width else None


@dataclass(frozen=True)
class _Place:
    """Where lanes go: a 64-bit address in a pair of vector registers, or an offset from a scalar
    pair, and a constant."""

    address: Register
    base: Register | None
    displacement: np.uint64

    def addresses(self, waves: Waves) -> Array:
        if self.base is None:
            return waves.read_vector(self.address, "u64") + self.displacement
        scalar = waves.read_vector(self.base, "u64") + self.displacement
        return scalar + waves.read_vector(self.address, "u32")

    @property
    def reads(self) -> tuple[OperandRead, ...]:
        return reads_of(self.address, *((self.base,) if self.base else ()))


def _place(instruction: Instruction, address: Operand, base: Operand | None) -> _Place:
    """The operands of an address; `base` is `off`, or missing in flat instructions."""
    displacement = np.uint64(instruction.signed_number("offset") & 0xFFFF_FFFF_FFFF_FFFF)
    if base is None or isinstance(base, AssemblySymbol):
        return _Place(check_registers(address, 2, "v"), None, displacement)
    pair = check_registers(base, 2, "s")
    return _Place(check_registers(address, 1, "v"), pair, displacement)


def _is_flat(instruction: Instruction) -> bool:
    return instruction.name.startswith("flat")


def _global(instruction: Instruction, is_load: bool, width: Width) -> Operation:
    unit: Unit = "flat" if _is_flat(instruction) else "vmem"
    first, second, *base = instruction.taking(2 if unit == "flat" else 3)
    address, moved = (second, first) if is_load else (first, second)
    data = check_registers(moved, width.registers, "va")
    place = _place(instruction, address, base[0] if base else None)

    move = load if is_load else store

    def execute(waves: Waves) -> None:
        addresses = place.addresses(waves)
        offsets, mask = reach_global(waves, addresses, waves.exec_mask(), width.size)
        move(waves, waves.memory, offsets, data, width, mask)

    def execute_flat(waves: Waves) -> None:
        def access(memory: ByteStore, offsets: Addresses, mask: Mask | None) -> None:
            move(waves, memory, offsets, data, width, mask)

        access_flat(waves, place.addresses(waves), width.size, 1, access)

    run = execute_flat if unit == "flat" else execute
    if is_load:
        kept = (OperandRead(data, 0xFFFF if width.half == "hi" else 0xFFFF0000, moved=True),)
        return Operation(run, unit, place.reads + (kept if width.half else ()), (data,))
    return Operation(run, unit, (*place.reads, OperandRead(data, moved=True)))


def _global_to_lds(instruction: Instruction, width: Width) -> Operation:
    """A load straight to LDS, at M0 and the offset: one lane's data after the other."""
    address, base = instruction.taking(2)
    place = _place(instruction, address, base)
    in_lds = instruction.signed_number("offset") & 0xFFFF_FFFF

    def execute(waves: Waves) -> None:
        lanes = waves.exec_mask()
        fetch_to_lds(waves, place.addresses(waves), lanes, lanes, in_lds, width)

    return Operation(execute, "vmem", (*place.reads, OperandRead(M0_REGISTER)))


def _scratch(instruction: Instruction, is_load: bool, width: Width) -> Operation:
    """A load or store of each lane's own memory, at vector, scalar and constant offsets."""
    first, second, base = instruction.taking(3)
    address, moved = (second, first) if is_load else (first, second)
    parts = _scratch_parts(address, base)
    displacement = instruction.signed_number("offset")
    data = check_registers(moved, width.registers, "va")

    def execute(waves: Waves) -> None:
        move_scratch(waves, _sum(waves, parts, displacement), data, is_load, width)

    if is_load:
        return Operation(execute, "vmem", reads_of(*parts), (data,))
    return Operation(execute, "vmem", (*reads_of(*parts), OperandRead(data, moved=True)))


def _scratch_to_lds(instruction: Instruction, width: Width) -> Operation:
    """A load of each lane's own memory straight to LDS, as one of global memory goes there."""
    parts = _scratch_parts(*instruction.taking(2))
    displacement = instruction.signed_number("offset")

    def execute(waves: Waves) -> None:
        scratch_to_lds(waves, _sum(waves, parts, displacement), displacement & 0xFFFF_FFFF, width)

    return Operation(execute, "vmem", (*reads_of(*parts), OperandRead(M0_REGISTER)))


def _scratch_parts(address: Operand, base: Operand) -> list[Register]:
    """The registers whose sum is an offset in scratch memory."""
    return [
        check_registers(part, 1, bank)
        for part, bank in ((address, "v"), (base, "s"))
        if not isinstance(part, AssemblySymbol)
    ]


def _sum(waves: Waves, parts: Sequence[Register], displacement: int) -> Array:
    offset: Array = np.full((1, 1), displacement & 0xFFFF_FFFF, dtype=np.uint32)
    for part in parts:
        offset = offset + waves.read_vector(part, "u32")
    return offset


def _atomic(instruction: Instruction, update: Update) -> Operation:
    returns = bool({"sc0", "glc"} & set(instruction.modifiers))
    operands = instruction.taking((2 if _is_flat(instruction) else 3) + returns)
    target = check_registers(operands.pop(0), update.words, "va") if returns else None
    address, brought, *base = operands
    data = check_registers(brought, update.words * update.atomic.values, "va")
    place = _place(instruction, address, base[0] if base else None)

    def execute(waves: Waves) -> None:
        def access(memory: ByteStore, offsets: Addresses, mask: Mask | None) -> None:
            update_memory(waves, memory, offsets, update, [data], target, mask)

        size, addresses = update.size, place.addresses(waves)
        if _is_flat(instruction):
            access_flat(waves, addresses, size, size, access)
        else:
            access(waves.memory, *reach_global(waves, addresses, waves.exec_mask(), size, size))

    reads = reads_of(place.address, data, *((place.base,) if place.base else ()))
    return Operation(execute, "vmem", reads, (target,) if target else ())
