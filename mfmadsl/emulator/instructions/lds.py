"""LDS instructions (CDNA3 ISA, chapter 11; the transposing reads: CDNA4 ISA, chapter 11)."""

from __future__ import annotations

import re

import numpy as np

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.instructions.atomic import Update, find_update, update_memory
from mfmadsl.emulator.instructions.lds_counter import (
    BY_LANE,
    COUNTERS,
    compile_by_lane,
    compile_counter,
)
from mfmadsl.emulator.instructions.lds_places import compile_of_two_places
from mfmadsl.emulator.instructions.swizzle import swizzle_pattern, swizzled_lanes
from mfmadsl.emulator.machine.bits import Array, Mask, codes_of, words_of_codes
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import OperandRead, Operation, reads_of
from mfmadsl.emulator.machine.transfer import load, put, reach_lds, read, store
from mfmadsl.emulator.machine.wave import LANES, Waves
from mfmadsl.emulator.machine.width import WIDTHS, Width
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Operand, Register, check_registers

_MOVE = re.compile(r"ds_(read|write)(2st64|2|)_(\w+)")
_TRANSPOSE = re.compile(r"ds_read_b(64|96)_tr_b(4|6|8|16)")
_ATOMIC = re.compile(r"ds_(\w+?)(_rtn)?_(u32|i32|u64|i64|b32|b64|f32|f64|f16|bf16)")
_OF_TWO_PLACES = re.compile(r"ds_(\w+?)_src2_(\w+)")
_EXCHANGE_OF_TWO = re.compile(r"ds_wrxchg2(st64)?_rtn_b(32|64)")
_PAIRED = (4, 8)  # bytes of each of two accesses by one instruction
_BLOCK = 16  # lanes that transpose together


def compile_lds(instruction: Instruction, machine: Machine) -> Operation | None:
    """What an LDS instruction does, or None if it is not one of these."""
    del machine
    name = instruction.name
    if name == "ds_swizzle_b32":
        return _swizzle(instruction)
    if set(instruction.modifiers) - {"offset", "offset0", "offset1"}:
        return None
    if match := _TRANSPOSE.fullmatch(name):
        return _transposing_read(instruction, int(match[1]) // 32, int(match[2]))
    if match := _MOVE.fullmatch(name):
        width = WIDTHS.get(match[3])
        scale = {"2st64": 64, "2": 1, "": 0}[match[2]]
        if width is not None and not (scale and width.size not in _PAIRED):
            return _move(instruction, match[1] == "read", scale, width)
    if name in COUNTERS:
        return compile_counter(instruction, COUNTERS[name])
    if name in BY_LANE:
        return compile_by_lane(instruction)
    if match := _EXCHANGE_OF_TWO.fullmatch(name):
        return _exchange_of_two(instruction, int(match[2]) // 32, 64 if match[1] else 1)
    if name in ("ds_bpermute_b32", "ds_permute_b32"):
        return _permute(instruction, backward=name.startswith("ds_b"))
    if match := _OF_TWO_PLACES.fullmatch(name):
        update = find_update(match[1].replace("write", "wrxchg"), match[2])
        return compile_of_two_places(instruction, update) if update else None
    if match := _ATOMIC.fullmatch(name):
        update = find_update(match[1], match[3])
        return _atomic(instruction, update, returns=match[2] is not None) if update else None
    return None


def accessed_bytes(instruction: Instruction) -> int | None:
    """Bytes that a lane loads or stores in LDS at once; None if it does neither."""
    match = _MOVE.fullmatch(instruction.name)
    width = WIDTHS.get(match[3]) if match else None
    return width.size if width else None


def _move(instruction: Instruction, is_load: bool, scale: int, width: Width) -> Operation:
    first, second, *third = instruction.taking(3 if scale and not is_load else 2)
    address = check_registers(second if is_load else first, 1, "v")
    count = width.registers
    if not scale:
        registers = [check_registers(first if is_load else second, count, "va")]
    elif is_load:
        both = check_registers(first, 2 * count, "va")
        registers = [Register(both.bank, both.index + i * count, count) for i in range(2)]
    else:
        registers = [check_registers(operand, count, "va") for operand in (second, *third)]
    places = [instruction.number("offset")]
    if scale:
        step = width.size * scale
        places = [instruction.number(name, bits=8) * step for name in ("offset0", "offset1")]

    def execute(waves: Waves) -> None:
        # Both offsets are read before either is written: the target may hold the address.
        reached = [_reach(waves, address, place, width.size) for place in places]
        for (offsets, mask), register in zip(reached, registers, strict=True):
            (load if is_load else store)(waves, waves.lds, offsets, register, width, mask)

    if is_load:
        return Operation(execute, "lds", reads_of(address), tuple(registers))
    data = [OperandRead(register, moved=True) for register in registers]
    return Operation(execute, "lds", (*reads_of(address), *data))


def _reach(
    waves: Waves, address: Operand, place: int, size: int, alignment: int = 1
) -> tuple[Array, Mask | None]:
    addresses = waves.read_vector(address, "u32") + np.uint32(place)
    return reach_lds(waves, addresses, waves.exec_mask(), size, alignment)


def _transposing_read(instruction: Instruction, words: int, bits: int) -> Operation:
    """Blocks of 16 lanes load rows of 16 elements; each lane keeps a column.

    The elements of a row lie side by side in one lane or in several neighbours. EXEC must be full.
    """
    first, second = instruction.taking(2)
    target, address = check_registers(first, words, "va"), check_registers(second, 1, "v")
    width = Width(4 * words)
    alignment = 1 << (width.size - 1).bit_length()
    place = instruction.number("offset")

    def execute(waves: Waves) -> None:
        if waves.exec_mask() is not None:
            raise EmulationError("EXEC must be full where lanes transpose", kind="exec-not-full")
        offsets, mask = _reach(waves, address, place, width.size, alignment)
        if mask is not None:
            return  # a fault, and whoever watches wants to go on
        if waves.watch is not None:
            waves.watch.loads(waves, waves.lds, offsets, target, width, None)
        loaded = np.moveaxis(read(waves.lds, offsets, width), 0, -1)
        rows = codes_of(np.ascontiguousarray(loaded), bits)
        blocks = rows.reshape(waves.count, LANES // _BLOCK, -1, _BLOCK)
        columns = blocks.swapaxes(-1, -2).reshape(waves.count, LANES, -1)
        put(waves, np.moveaxis(words_of_codes(columns, bits), -1, 0), target, width, None)

    return Operation(execute, "lds", reads_of(address), (target,))


def _permute(instruction: Instruction, backward: bool) -> Operation:
    """Values from, or to, the lanes that addresses name; LDS itself is not touched."""
    first, second, third = instruction.taking(3)
    target, data = (check_registers(o, 1, "va") for o in (first, third))
    address = check_registers(second, 1, "v")
    displacement = np.uint32(instruction.number("offset"))

    def moved(waves: Waves, source: Waves) -> Array:
        values = np.broadcast_to(source.read_vector(data, "u32"), (waves.count, LANES))
        lane = waves.read_vector(address, "u32") + displacement
        lane = np.broadcast_to(lane >> np.uint32(2) & np.uint32(LANES - 1), values.shape)
        mask = waves.exec_mask()
        wave = np.arange(waves.count)[:, None]
        if backward:  # a lane that is switched off gives 0
            shown = values if mask is None else np.where(mask, values, 0)
            return shown[wave, lane].astype(np.uint32)
        result = np.zeros_like(values)
        for source_lane in range(LANES):  # in order: of several that write to one, the last stays
            writes = np.ones(waves.count, np.bool_) if mask is None else mask[:, source_lane]
            result[wave[writes, 0], lane[writes, source_lane]] = values[writes, source_lane]
        return result

    def execute(waves: Waves) -> None:
        waves.write_vector(target, moved(waves, waves))

    reads = (*reads_of(address), OperandRead(data, moved=True))
    return Operation(execute, "lds", reads, (target,), flow=moved)


def _swizzle(instruction: Instruction) -> Operation | None:
    """ds_swizzle_b32: lanes read others by a fixed pattern."""
    if set(instruction.modifiers) - {"offset"}:
        return None
    first, second = instruction.taking(2)
    target, source = check_registers(first, 1, "va"), check_registers(second, 1, "v")
    chosen = swizzled_lanes(swizzle_pattern(instruction.modifiers.get("offset", "0")))

    def moved(waves: Waves, data: Waves) -> Array:
        values = np.broadcast_to(data.read_vector(source, "u32"), (waves.count, LANES))
        mask = waves.exec_mask()
        shown = values if mask is None else np.where(mask, values, 0)
        return shown[:, chosen].astype(np.uint32)

    def execute(waves: Waves) -> None:
        waves.write_vector(target, moved(waves, waves))

    return Operation(execute, "lds", (OperandRead(source, moved=True),), (target,), flow=moved)


def _atomic(instruction: Instruction, update: Update, returns: bool) -> Operation:
    operands = instruction.taking(1 + update.atomic.values + returns)
    target = check_registers(operands.pop(0), update.words, "va") if returns else None
    address = check_registers(operands.pop(0), 1, "v")
    data = [check_registers(operand, update.words, "va") for operand in operands]
    place, size = instruction.number("offset"), update.size

    def execute(waves: Waves) -> None:
        offsets, mask = _reach(waves, address, place, size, size)
        update_memory(waves, waves.lds, offsets, update, data, target, mask)

    return Operation(execute, "lds", reads_of(address, *data), (target,) if target else ())


def _exchange_of_two(instruction: Instruction, words: int, scale: int) -> Operation:
    """Two exchanges at two offsets."""
    first, second, *brought = instruction.taking(4)
    address = check_registers(second, 1, "v")
    target = check_registers(first, 2 * words, "va")
    data = [check_registers(operand, words, "va") for operand in brought]
    update = find_update("wrxchg", f"b{32 * words}")
    assert update is not None
    places = [
        instruction.number(name, bits=8) * 4 * words * scale for name in ("offset0", "offset1")
    ]

    def execute(waves: Waves) -> None:
        reached = [_reach(waves, address, place, update.size, update.size) for place in places]
        for i, (offsets, mask) in enumerate(reached):
            half = Register(target.bank, target.index + i * words, words)
            update_memory(waves, waves.lds, offsets, update, [data[i]], half, mask)

    return Operation(execute, "lds", reads_of(address, *data), (target,))
