"""Buffer instructions: memory through a descriptor, with bounds (CDNA3 ISA, chapter 9)."""

from __future__ import annotations

import re

import numpy as np

from mfmadsl.emulator.error import EmulationError, OperandError
from mfmadsl.emulator.instructions.atomic import Update, find_memory_update, update_memory
from mfmadsl.emulator.machine.bits import Array, Mask, pair_of_words
from mfmadsl.emulator.machine.launch import SCRATCH_DESCRIPTOR
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import OperandRead, Operation, reads_of
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
from mfmadsl.emulator.text.operand import (
    AssemblySymbol,
    Operand,
    Register,
    check_registers,
    check_source,
)

_MOVE = re.compile(r"buffer_(load|store)_(\w+)")
_ATOMIC = re.compile(r"buffer_atomic_(\w+?)(_x2|_f32|_f64|_f16|_bf16)?")
_FLAGS = {"offset", "offen", "idxen", "lds", "sc0", "sc1", "nt", "glc", "slc", "scc"}


def compile_buffer(instruction: Instruction, machine: Machine) -> Operation | None:
    """What a buffer instruction does, or None if it is not one of these."""
    del machine
    modifiers = instruction.modifiers
    if set(modifiers) - _FLAGS:
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


class _Place:
    """Where the lanes of a buffer instruction go."""

    def __init__(self, instruction: Instruction, operands: list[Operand]) -> None:
        """`operands` are an index and an offset in vector registers, as far as the modifiers say
        so, else `off`; the descriptor; and an offset of all lanes."""
        vector, descriptor, self._base = operands
        check_source(self._base, "u32", "s")
        self._descriptor = check_registers(descriptor, 4, "s")
        self._displacement = instruction.number("offset", bits=12)
        parts = ("idxen" in instruction.modifiers) + ("offen" in instruction.modifiers)
        registers = check_registers(vector, parts, "v") if parts else None
        if registers is None and not isinstance(vector, AssemblySymbol):
            raise OperandError("a vector register needs idxen or offen")
        self._vectors = registers
        self._index, self._offset = (
            Register("v", registers.index + place, 1)
            if registers is not None and name in instruction.modifiers
            else None
            for name, place in (("idxen", 0), ("offen", parts - 1))
        )

    def reads(self) -> tuple[OperandRead, ...]:
        vectors = (self._vectors,) if self._vectors else ()
        return reads_of(*vectors, self._descriptor, self._base)

    def scratch_offset(self, waves: Waves) -> Array | None:
        """The offset in scratch memory, if that is what the descriptor describes."""
        last = waves.scalar[self._descriptor.index + 3]
        if not (last == SCRATCH_DESCRIPTOR[3]).all():
            return None
        # The scalar offset is not swizzled: it counts the bytes of all lanes together.
        offset = waves.read_vector(self._base, "u32") // np.uint32(LANES)
        offset = offset + np.uint32(self._displacement)
        if self._vectors is not None:
            offset = offset + waves.read_vector(self._vectors, "u32")
        return offset

    def find(self, waves: Waves) -> tuple[Array, Array, Array]:
        """Addresses, and offsets with the size that bounds them; all (count, 64).

        Raises EmulationError if the descriptor is swizzled.
        """
        low, high, size, _ = waves.scalar[self._descriptor.index : self._descriptor.index + 4]
        if (high >> 31).any():
            raise EmulationError("the buffer is swizzled, and that is not emulated")
        base = pair_of_words(low, high & np.uint32(0xFFFF))
        stride = (high >> np.uint32(16) & np.uint32(0x3FFF)).astype(np.int64)
        offset = np.full((waves.count, LANES), self._displacement, dtype=np.int64)
        offset += waves.read_vector(self._base, "u32").astype(np.int64)
        if self._index is not None:
            offset += waves.read_vector(self._index, "u32").astype(np.int64) * stride[:, None]
        if self._offset is not None:
            offset += waves.read_vector(self._offset, "u32").astype(np.int64)
        # With an index, the size counts records.
        records = 1 if self._index is None else np.maximum(stride, 1)
        bound = size.astype(np.int64) * records
        addresses = base[:, None] + offset.astype(np.uint64)
        return addresses, offset, np.broadcast_to(bound[:, None], offset.shape)

    def compare_rules(self, waves: Waves, offset: Array, bound: Array, width: Width) -> None:
        """Tell who watches of a lane that is outside by one of two rules, and inside by the other.

        The ISA manuals compare a raw buffer's offset with what the scalar offset leaves of its size
        (CDNA3 ISA, section 9.1.5); LLVM's intrinsics leave the scalar offset out of the comparison
        and add it afterwards (IntrinsicsAMDGPU.td).
        """
        if waves.watch is None or self._index is not None:
            return
        scalar = waves.read_vector(self._base, "u32").astype(np.int64)
        scalar = np.broadcast_to(scalar, offset.shape)
        piece = _pieces(width)[0][1].size
        # The first piece that is outside by the manual is the one that is inside by LLVM, if any.
        first = np.maximum(bound - offset, 0) // piece * piece
        inside = (first < width.size) & (offset - scalar + first + piece <= bound)
        lanes = waves.lanes_of(waves.exec_mask())
        if (disputed := lanes & inside).any():
            wave, lane = (int(each) for each in np.argwhere(disputed)[0])
            at, size, ahead = (int(each[wave, lane]) for each in (offset, bound, scalar))
            waves.watch.disputed(
                waves,
                f"{width.size} bytes at offset {at} of a buffer of {size} bytes are outside of it"
                f" if the scalar offset, {ahead}, counts, as the ISA manual says, and inside if it"
                " does not, as LLVM says: add it to the lane's offset or to the base",
                wave, lane,
            )  # fmt: skip


def _pieces(width: Width) -> list[tuple[int, Width]]:
    """The parts of an access whose bounds are checked each for itself: its words."""
    return [(i, Width(4)) for i in range(width.words)] if width.words else [(0, width)]


def _move(instruction: Instruction, is_load: bool, width: Width) -> Operation:
    moved, *operands = instruction.taking(4)
    place = _Place(instruction, operands)
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
        kept = (OperandRead(data, 0xFFFF if width.half == "hi" else 0xFFFF0000, moved=True),)
        return Operation(execute, "vmem", place.reads() + (kept if width.half else ()), (data,))
    # Scratch memory takes registers as they are, and so do lanes out of bounds.
    return Operation(execute, "vmem", (*place.reads(), OperandRead(data, moved=True)))


def _to_lds(instruction: Instruction, width: Width) -> Operation:
    place = _Place(instruction, instruction.taking(3))
    displacement = instruction.number("offset", bits=12)

    def execute(waves: Waves) -> None:
        addresses, offset, bound = place.find(waves)
        place.compare_rules(waves, offset, bound, width)
        inside = waves.lanes_of(waves.exec_mask()) & (offset + width.size <= bound)
        fetch_to_lds(waves, addresses, inside, waves.exec_mask(), displacement, width)

    return Operation(execute, "vmem", (*place.reads(), OperandRead(M0_REGISTER)))


def _atomic(instruction: Instruction, update: Update) -> Operation:
    brought, *operands = instruction.taking(4)
    place = _Place(instruction, operands)
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
