"""Buffer instructions: memory through a descriptor, with bounds (CDNA3 ISA, chapter 9)."""

from __future__ import annotations

import re

import numpy as np

from mfmadsl.emulator.instructions.atomic import Update, find_memory_update, update_memory
from mfmadsl.emulator.instructions.buffer_place import BUFFER_FLAGS, BufferPlace, pieces
from mfmadsl.emulator.instructions.typed_buffer import compile_typed_buffer
from mfmadsl.emulator.machine.bits import Array, Mask
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import OperandRead, Operation
from mfmadsl.emulator.machine.transfer import (
    M0_REGISTER,
    fetch_to_lds,
    load,
    move_scratch,
    put,
    reach_global,
    store,
)
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.machine.width import WIDTHS, Width
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import (
    Register,
    check_registers,
)

_MOVE = re.compile(r"buffer_(load|store)_(\w+)")
_ATOMIC = re.compile(r"buffer_atomic_(\w+?)(_x2|_f32|_f64|_f16|_bf16)?")


def compile_buffer(instruction: Instruction, machine: Machine) -> Operation | None:
    """What a buffer instruction does, or None if it is not one of these."""
    del machine
    modifiers = instruction.modifiers
    if "_format_" in instruction.name:
        return compile_typed_buffer(instruction)
    if set(modifiers) - BUFFER_FLAGS:
        return None
    if match := _ATOMIC.fullmatch(instruction.name):
        update = find_memory_update(match[1], match[2])
        return _atomic(instruction, update) if update else None
    match = _MOVE.fullmatch(instruction.name)
    width = WIDTHS.get(match[2]) if match else None
    if match is None or width is None:
        return None
    if "lds" in modifiers:
        return _to_lds(instruction, width)
    return _move(instruction, match[1] == "load", width)


def _move(instruction: Instruction, is_load: bool, width: Width) -> Operation:
    moved, *operands = instruction.taking(4)
    place = BufferPlace(instruction, operands)
    data = check_registers(moved, width.registers, "va")

    def execute(waves: Waves) -> None:
        in_scratch = place.scratch_offset(waves)
        if in_scratch is not None:
            move_scratch(waves, in_scratch, data, is_load, width)
            return
        addresses, offset, bound = place.find(waves)
        place.compare_rules(waves, offset, bound, width)
        lanes = waves.lanes_of(waves.exec_mask())
        inside, outside = lanes & (offset + width.size <= bound), lanes & (offset >= bound)
        if not (inside | outside == lanes).all():  # some lanes straddle the end
            for i, piece in pieces(width):
                part = Register(data.bank, data.index + i, 1)
                within = lanes & (offset + 4 * i + piece.size <= bound)
                transfer(waves, addresses + np.uint64(4 * i), part, piece, within, lanes & ~within)
            return
        transfer(waves, addresses, data, width, inside, outside)

    def transfer(
        waves: Waves, addresses: Array, data: Register, width: Width, inside: Mask, outside: Mask
    ) -> None:
        offsets, mask = reach_global(waves, addresses, None if inside.all() else inside, width.size)
        if not is_load:
            store(waves, waves.memory, offsets, data, width, mask)
            return
        load(waves, waves.memory, offsets, data, width, mask)
        if outside.any():
            zeros = np.zeros((max(1, width.words), int(outside.sum())), dtype=np.uint32)
            put(waves, zeros, data, width, outside)
            if waves.watch is not None:
                waves.watch.clears(waves, data, width, outside)

    if is_load:
        kept = (OperandRead(data, 0xFFFF if width.half == "hi" else 0xFFFF0000, moved=True),)
        return Operation(execute, "vmem", place.reads() + (kept if width.half else ()), (data,))
    # Scratch memory takes registers as they are, and so do lanes out of bounds.
    return Operation(execute, "vmem", (*place.reads(), OperandRead(data, moved=True)))


def _to_lds(instruction: Instruction, width: Width) -> Operation:
    place = BufferPlace(instruction, instruction.taking(3))
    displacement = instruction.number("offset", bits=12)

    def execute(waves: Waves) -> None:
        addresses, offset, bound = place.find(waves)
        place.compare_rules(waves, offset, bound, width)
        inside = waves.lanes_of(waves.exec_mask()) & (offset + width.size <= bound)
        fetch_to_lds(waves, addresses, inside, waves.exec_mask(), displacement, width)

    return Operation(execute, "vmem", (*place.reads(), OperandRead(M0_REGISTER)))


def _atomic(instruction: Instruction, update: Update) -> Operation:
    brought, *operands = instruction.taking(4)
    place = BufferPlace(instruction, operands)
    data = check_registers(brought, update.words * update.atomic.values, "va")
    target = Register(data.bank, data.index, update.words)
    returns = bool({"sc0", "glc"} & set(instruction.modifiers))
    size = update.size

    def execute(waves: Waves) -> None:
        addresses, offset, bound = place.find(waves)
        place.compare_rules(waves, offset, bound, Width(size))
        inside = waves.lanes_of(waves.exec_mask()) & (offset + size <= bound)
        offsets, reached = reach_global(waves, addresses, inside, size, size)
        back = target if returns else None
        update_memory(waves, waves.memory, offsets, update, [data], back, reached)

    return Operation(
        execute, "vmem", (*place.reads(), OperandRead(data)), (data,) if returns else ()
    )
