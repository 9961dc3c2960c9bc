"""Buffer instructions: memory through a descriptor, with bounds (CDNA3 ISA, chapter 9)."""

from __future__ import annotations

import re

import numpy as np

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.instructions.atomic import ATOMICS, atomic, bytes_of, memory_atomic
from mfmadsl.emulator.machine.bits import Array, Mask
from mfmadsl.emulator.machine.launch import SCRATCH_DESCRIPTOR
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import Operation, Read, reads_of
from mfmadsl.emulator.machine.transfer import (
    M0_REGISTER,
    fetch_to_lds,
    load,
    move_scratch,
    put,
    reach_global,
    store,
)
from mfmadsl.emulator.machine.wave import LANES, Waves
from mfmadsl.emulator.machine.width import WIDTHS, Width
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Operand, Register, Symbol, as_register

_MOVE = re.compile(r"buffer_(load|store)_(\w+)")
_ATOMIC = re.compile(r"buffer_atomic_(\w+?)(_x2|_f32|_f64|_f16|_bf16)?")
_FLAGS = {"offset", "offen", "idxen", "lds", "sc0", "sc1", "nt", "glc", "slc", "scc"}


def compile_buffer(instruction: Instruction, machine: Machine) -> Operation | None:
    """What a buffer instruction does, or None if it is not one of these."""
    del machine
    modifiers = instruction.modifiers
    if set(modifiers) - _FLAGS:
        return None
    if (match := _ATOMIC.fullmatch(instruction.name)) and match[1] in ATOMICS:
        return _atomic(instruction, match[1], match[2])
    match = _MOVE.fullmatch(instruction.name)
    width = WIDTHS.get(match[2]) if match else None
    if match is None or width is None:
        return None
    if "lds" in modifiers:
        return _to_lds(instruction, width)
    return _move(instruction, match[1] == "load", width)


class _Place:
    """Where the lanes of a buffer instruction go."""

    def __init__(self, instruction: Instruction, operands: list[Operand]) -> None:
        self._vector, descriptor, self._base = operands
        descriptor = as_register(descriptor)
        self._descriptor = descriptor
        self._displacement = instruction.offset()
        self._index = "idxen" in instruction.modifiers
        self._offset = "offen" in instruction.modifiers

    def reads(self) -> tuple[Read, ...]:
        return reads_of(self._vector, self._descriptor, self._base)

    def scratch_offset(self, waves: Waves) -> Array | None:
        """The offset in scratch memory, if that is what the descriptor describes."""
        last = waves.scalar[self._descriptor.index + 3]
        if not (last == SCRATCH_DESCRIPTOR[3]).all():
            return None
        # The scalar offset is not swizzled: it counts the bytes of all lanes together.
        offset = waves.read_vector(self._base, "u32") // np.uint32(LANES)
        offset = offset + np.uint32(self._displacement)
        if not isinstance(self._vector, Symbol):
            offset = offset + waves.read_vector(self._vector, "u32")
        return offset

    def find(self, waves: Waves) -> tuple[Array, Array, Array]:
        """Addresses, and offsets with the size that bounds them; all (count, 64).

        Raises EmulationError if the descriptor is swizzled.
        """
        low, high, size, _ = waves.scalar[self._descriptor.index : self._descriptor.index + 4]
        if (high >> 31).any():
            raise EmulationError("the buffer is swizzled, and that is not emulated")
        base = low.astype(np.uint64) | (high & 0xFFFF).astype(np.uint64) << np.uint64(32)
        stride = (high >> np.uint32(16) & np.uint32(0x3FFF)).astype(np.int64)
        offset = np.full((waves.count, LANES), self._displacement, dtype=np.int64)
        offset += waves.read_vector(self._base, "u32").astype(np.int64)
        vector, index = self._vector, np.zeros((1, 1), dtype=np.int64)
        if self._index:
            vector = as_register(vector)
            index = waves.read_vector(Register("v", vector.index, 1), "u32").astype(np.int64)
        if self._offset:
            vector = as_register(vector)
            last = Register("v", vector.index + vector.count - 1, 1)
            offset += waves.read_vector(last, "u32").astype(np.int64)
        offset += index * stride[:, None]
        # With an index, the size counts records.
        bound = size.astype(np.int64) * (np.maximum(stride, 1) if self._index else 1)
        addresses = base[:, None] + offset.astype(np.uint64)
        return addresses, offset, np.broadcast_to(bound[:, None], offset.shape)


def _pieces(width: Width) -> list[tuple[int, Width]]:
    """Bounds are checked word by word."""
    return [(i, Width(4)) for i in range(width.words)] if width.words else [(0, width)]


def _move(instruction: Instruction, is_load: bool, width: Width) -> Operation:
    data, *operands = instruction.operands
    place = _Place(instruction, operands)
    data = as_register(data)

    def execute(waves: Waves) -> None:
        in_scratch = place.scratch_offset(waves)
        if in_scratch is not None:
            move_scratch(waves, in_scratch, data, is_load, width)
            return
        addresses, offset, bound = place.find(waves)
        lanes = waves.lanes_of(waves.exec_mask())
        inside, outside = lanes & (offset + width.size <= bound), lanes & (offset >= bound)
        if not (inside | outside == lanes).all():  # some lanes straddle the end
            for i, piece in _pieces(width):
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
        kept = (Read(data, 0xFFFF if width.half == "hi" else 0xFFFF0000, moved=True),)
        return Operation(execute, "vmem", place.reads() + (kept if width.half else ()), (data,))
    # Scratch memory takes registers as they are, and so do lanes out of bounds.
    return Operation(execute, "vmem", (*place.reads(), Read(data, moved=True)))


def _to_lds(instruction: Instruction, width: Width) -> Operation:
    place = _Place(instruction, list(instruction.operands))
    displacement = instruction.offset()

    def execute(waves: Waves) -> None:
        addresses, offset, bound = place.find(waves)
        inside = waves.lanes_of(waves.exec_mask()) & (offset + width.size <= bound)
        fetch_to_lds(waves, addresses, inside, waves.exec_mask(), displacement, width)

    return Operation(execute, "vmem", (*place.reads(), Read(M0_REGISTER)))


def _atomic(instruction: Instruction, name: str, suffix: str | None) -> Operation:
    data, *operands = instruction.operands
    place = _Place(instruction, operands)
    data = as_register(data)
    returns = bool({"sc0", "glc"} & set(instruction.modifiers))
    combine, kind = memory_atomic(name, suffix)
    size = bytes_of(kind)

    def execute(waves: Waves) -> None:
        addresses, offset, bound = place.find(waves)
        inside = waves.lanes_of(waves.exec_mask()) & (offset + size <= bound)
        offsets, reached = reach_global(waves, addresses, inside, size, size)
        target = Register(data.bank, data.index, size // 4) if returns else None
        atomic(waves, waves.memory, offsets, combine, kind, [data], target, reached)

    return Operation(execute, "vmem", (*place.reads(), Read(data)), (data,) if returns else ())
