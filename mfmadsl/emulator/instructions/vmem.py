"""Loads and stores of lanes beyond LDS: global, flat, buffer and scratch (CDNA3 ISA, 9 and 10)."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from mfmadsl.emulator.instructions.atomic import ATOMICS, atomic, bytes_of, memory_atomic
from mfmadsl.emulator.instructions.buffer import compile_buffer
from mfmadsl.emulator.machine.bits import Array
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import Operation, Read, Unit, reads_of
from mfmadsl.emulator.machine.transfer import (
    M0_REGISTER,
    fetch_to_lds,
    load,
    move_scratch,
    reach_global,
    store,
)
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.machine.width import WIDTHS, Width
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Operand, Register, Symbol, as_register

_MOVE = re.compile(r"(global|flat|scratch)_(load|store)_(\w+)")
_TO_LDS = re.compile(r"(global|scratch)_load_lds_(\w+)")
_ATOMIC = re.compile(r"(global|flat)_atomic_(\w+?)(_x2|_f32|_f64|_f16|_bf16)?")
CACHE_FLAGS = frozenset({"sc0", "sc1", "nt", "glc", "slc", "scc", "dlc"})


def compile_vmem(instruction: Instruction, machine: Machine) -> Operation | None:
    """What a memory instruction does, or None if it is not one of these."""
    name = instruction.name
    if name.startswith("buffer_"):
        return compile_buffer(instruction, machine)
    if set(instruction.modifiers) - {"offset"} - CACHE_FLAGS:
        return None
    if match := _TO_LDS.fullmatch(name):
        return _global_to_lds(instruction, WIDTHS[match[2]])
    if match := _MOVE.fullmatch(name):
        move = _scratch if match[1] == "scratch" else _global
        return move(instruction, match[2] == "load", WIDTHS[match[3]])
    if (match := _ATOMIC.fullmatch(name)) and match[2] in ATOMICS:
        return _atomic(instruction, match[2], match[3])
    return None


def _addresses(instruction: Instruction, address: Operand, base: Operand | None
               ) -> Callable[[Waves], Array]:  # fmt: skip
    """A 64-bit address in a pair of vector registers, or an offset from a scalar pair."""
    displacement = np.uint64(instruction.offset() & 0xFFFF_FFFF_FFFF_FFFF)
    if base is None or isinstance(base, Symbol):
        return lambda waves: waves.read_vector(address, "u64") + displacement

    def addresses(waves: Waves) -> Array:
        scalar = waves.read_vector(base, "u64") + displacement
        return scalar + waves.read_vector(address, "u32")

    return addresses


def _global(instruction: Instruction, is_load: bool, width: Width) -> Operation:
    first, second, *base = instruction.operands
    address, data = (second, first) if is_load else (first, second)
    data = as_register(data)
    addresses = _addresses(instruction, address, base[0] if base else None)
    unit: Unit = "flat" if instruction.name.startswith("flat") else "vmem"
    # What may lie in scratch memory is aligned for it.
    alignment = min(width.size, 4) if unit == "flat" else 1

    def execute(waves: Waves) -> None:
        mask = waves.exec_mask()
        offsets, mask = reach_global(waves, addresses(waves), mask, width.size, alignment)
        (load if is_load else store)(waves, waves.memory, offsets, data, width, mask)

    if is_load:
        kept = (Read(data, 0xFFFF if width.half == "hi" else 0xFFFF0000, moved=True),)
        reads = reads_of(address, *base) + (kept if width.half else ())
        return Operation(execute, unit, reads, (data,))
    return Operation(execute, unit, (*reads_of(address, *base), Read(data, moved=True)))


def _global_to_lds(instruction: Instruction, width: Width) -> Operation:
    """Straight to LDS, at M0 and the offset: one lane's data after the other."""
    address, base = instruction.operands
    addresses = _addresses(instruction, address, base)
    place = instruction.offset()

    def execute(waves: Waves) -> None:
        fetch_to_lds(waves, addresses(waves), waves.exec_mask(), waves.exec_mask(), place, width)

    return Operation(execute, "vmem", reads_of(address, base, M0_REGISTER))


def _scratch(instruction: Instruction, is_load: bool, width: Width) -> Operation:
    """Each lane's own memory, at a vector offset, or else a scalar one, and a constant."""
    first, second, *base = instruction.operands
    address, data = (second, first) if is_load else (first, second)
    parts = [part for part in (address, *base) if not isinstance(part, Symbol)]
    displacement = instruction.offset()
    data = as_register(data)

    def execute(waves: Waves) -> None:
        offset: Array = np.full((1, 1), displacement & 0xFFFF_FFFF, dtype=np.uint32)
        for part in parts:
            offset = offset + waves.read_vector(part, "u32")
        move_scratch(waves, offset, data, is_load, width)

    if is_load:
        return Operation(execute, "vmem", reads_of(*parts), (data,))
    return Operation(execute, "vmem", (*reads_of(*parts), Read(data, moved=True)))


def _atomic(instruction: Instruction, name: str, suffix: str | None) -> Operation:
    operands = [o for o in instruction.operands if not isinstance(o, Symbol)]
    returns = bool({"sc0", "glc"} & set(instruction.modifiers))
    target = operands.pop(0) if returns else None
    address, data, *base = operands
    combine, kind = memory_atomic(name, suffix)
    addresses = _addresses(instruction, address, base[0] if base else None)

    def execute(waves: Waves) -> None:
        size = bytes_of(kind)
        offsets, mask = reach_global(waves, addresses(waves), waves.exec_mask(), size, size)
        atomic(waves, waves.memory, offsets, combine, kind, [data], target, mask)

    writes = (target,) if isinstance(target, Register) else ()
    return Operation(execute, "vmem", reads_of(address, data, *base), writes)
