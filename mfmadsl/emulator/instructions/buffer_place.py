"""Where the lanes of a buffer instruction go (CDNA3 ISA, section 9.1.5)."""

from __future__ import annotations

import numpy as np

from mfmadsl.emulator.error import EmulationError, OperandError
from mfmadsl.emulator.machine.bits import Array, pair_of_words
from mfmadsl.emulator.machine.launch import SCRATCH_DESCRIPTOR
from mfmadsl.emulator.machine.operation import OperandRead, reads_of
from mfmadsl.emulator.machine.wave import LANES, Waves
from mfmadsl.emulator.machine.width import Width
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import (
    AssemblySymbol,
    Operand,
    Register,
    check_registers,
    check_source,
)

BUFFER_FLAGS = frozenset(
    {"offset", "offen", "idxen", "lds", "sc0", "sc1", "nt", "glc", "slc", "scc"}
)


class BufferPlace:
    """Where the lanes of a buffer instruction go."""

    def __init__(self, instruction: Instruction, operands: list[Operand]) -> None:
        """`operands` are an index and an offset in vector registers, as far as the modifiers say
        so, else `off`; the descriptor; and an offset of all lanes."""
        vector, descriptor, self._base = operands
        check_source(self._base, "u32", "s")
        self.descriptor = check_registers(descriptor, 4, "s")
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
        """The registers that say where."""
        vectors = (self._vectors,) if self._vectors else ()
        return reads_of(*vectors, self.descriptor, self._base)

    def scratch_offset(self, waves: Waves) -> Array | None:
        """The offset in scratch memory, if that is what the descriptor describes."""
        last = waves.scalar[self.descriptor.index + 3]
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
        low, high, size, _ = waves.scalar[self.descriptor.index : self.descriptor.index + 4]
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
        piece = pieces(width)[0][1].size
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


def pieces(width: Width) -> list[tuple[int, Width]]:
    """The parts of an access whose bounds are checked each for itself: its words."""
    return [(i, Width(4)) for i in range(width.words)] if width.words else [(0, width)]
