"""Where the result of a vector instruction goes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mfmadsl.emulator.instructions.source import LanePattern, lane_pattern, selection
from mfmadsl.emulator.machine.bits import Array
from mfmadsl.emulator.machine.operation import ALL_BITS, OperandRead
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Register

_OP_SEL = 4
"""The flags of op_sel."""


@dataclass(frozen=True)
class Target:
    """Where a result goes: bits of a register, of which the others stay or become 0."""

    register: Register
    low: int = 0
    width: int = 0
    preserve: bool = False
    lanes: LanePattern | None = None

    def write(self, waves: Waves, value: Array) -> None:
        """Write the result, (count, 64), in the lanes that EXEC and DPP let write."""
        only = None if self.lanes is None else self.lanes.written(waves)
        waves.write_vector(self.register, self.placed(waves, value), only)

    def placed(self, waves: Waves, value: Array) -> Array:
        """The value at its bits of the register, with those that stay."""
        if not self.width:
            return value
        bits = value.view(f"u{value.itemsize}").astype(np.uint32) & np.uint32((1 << self.width) - 1)
        placed = bits << np.uint32(self.low)
        if self.preserve:
            placed = placed | waves.read_vector(self.register, "u32") & np.uint32(self._kept)
        return placed

    @property
    def _kept(self) -> int:
        return ~(((1 << self.width) - 1) << self.low) & ALL_BITS

    def flow(self, undefined: Waves, bits: Array) -> Array:
        """The undefined bits of the register, where those of the result are `bits`."""
        placed = self.placed(undefined, bits)
        if self.lanes is None:
            return placed
        kind = f"u{8 * placed.itemsize}"
        kept = undefined.read_vector(self.register, kind)
        return np.where(self.lanes.written(undefined), placed.view(kept.dtype), kept)

    def reads(self) -> tuple[OperandRead, ...]:
        """What of the register stays, and so is read."""
        if self.lanes is not None and self.lanes.keeps_some:
            return (OperandRead(self.register, moved=True),)
        if self.width and self.preserve:
            return (OperandRead(self.register, self._kept, moved=True),)
        return ()


def target_of(instruction: Instruction, register: Register, sources: int, part: int = 0) -> Target:
    """The target with its op_sel, SDWA selection and DPP pattern.

    With `part` the result is so many bits of a register, of which the others stay: a half, or a
    byte that the two last flags of op_sel count (CDNA4 ISA, section 7.3: OP_SEL[3:2]).
    """
    modifiers = instruction.modifiers
    if modifiers.get("dst_sel", "DWORD") != "DWORD":
        low, width = selection(modifiers["dst_sel"])
        # LLVM assembles what does not say it as preserved.
        preserve = modifiers.get("dst_unused", "UNUSED_PRESERVE") == "UNUSED_PRESERVE"
        return Target(register, low, width, preserve)
    flags = [*(instruction.written_flags("op_sel") or []), *[0] * _OP_SEL]
    if part == 8:
        return Target(register, 8 * (flags[2] + 2 * flags[3]), 8, preserve=True)
    high = flags[sources] == 1
    if high or part == 16:
        return Target(register, 16 * high, 16, preserve=True)
    return Target(register, lanes=lane_pattern(modifiers))
