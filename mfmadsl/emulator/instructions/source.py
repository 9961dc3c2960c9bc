"""A source of a vector instruction: a register, the part of it that counts, and whose lane's.

Sources: CDNA3 ISA, section 12.16 (SDWA and DPP), and the LLVM AMDGPU operand syntax.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.error import OperandError
from mfmadsl.emulator.machine.bits import Array, Mask, modified, sign_extended, typed, width_of
from mfmadsl.emulator.machine.operation import ALL_BITS, OperandRead
from mfmadsl.emulator.machine.wave import LANES, Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Literal, Operand, Register, check_source, parse_integer

_AMOUNTS: dict[str, range | tuple[int, ...]] = {
    **dict.fromkeys(["row_shl", "row_shr", "row_ror"], range(1, 16)),
    **dict.fromkeys(["wave_shl", "wave_shr", "wave_rol", "wave_ror"], (1,)),
    "row_bcast": (15, 31),
    "row_newbcast": range(16),
}
"""The controls that take a number, and which ones."""

DPP_CONTROLS = frozenset(["quad_perm", "row_mirror", "row_half_mirror", *_AMOUNTS])
DPP_MODIFIERS = DPP_CONTROLS | {"row_mask", "bank_mask", "bound_ctrl"}
_SELECTIONS = {
    "DWORD": (0, 32),
    **{f"BYTE_{i}": (8 * i, 8) for i in range(4)},
    **{f"WORD_{i}": (16 * i, 16) for i in range(2)},
}


@dataclass(frozen=True)
class LanePattern:
    """DPP: the lane that each lane reads from, where that exists, and the lanes that write."""

    source: npt.NDArray[np.int64]
    exists: Mask
    writes: Mask
    zero_fill: bool

    @property
    def keeps_some(self) -> bool:
        """Whether there may be lanes whose result is not kept."""
        return not (self.zero_fill and self.writes.all())

    def written(self, waves: Waves) -> Mask:
        """(count, 64): lanes whose result is kept."""
        writes = np.broadcast_to(self.writes, (waves.count, LANES))
        return writes if self.zero_fill else writes & self._readable(waves)

    def move(self, waves: Waves, bits: Array) -> Array:
        """(count, 64): the bits of the lane that each lane reads from, 0 if there is none."""
        moved = np.broadcast_to(bits, (waves.count, LANES))[:, self.source]
        return np.where(self._readable(waves), moved, moved.dtype.type(0))

    def _readable(self, waves: Waves) -> Mask:
        mask = waves.exec_mask()
        exists = np.broadcast_to(self.exists, (waves.count, LANES))
        return exists if mask is None else exists & mask[:, self.source]


def lane_pattern(modifiers: Mapping[str, str]) -> LanePattern | None:
    """The pattern that DPP modifiers describe, or None where there are none.

    Raises OperandError for a pattern that does not exist.
    """
    if not DPP_MODIFIERS & set(modifiers):
        return None
    controls = DPP_CONTROLS & set(modifiers)
    if len(controls) != 1:
        raise OperandError("DPP has one control")
    (control,) = controls
    source, exists = _sources_of_lanes(control, modifiers[control])
    lane = np.arange(LANES)
    rows, banks = (_four_bits(modifiers.get(name, "0xf")) for name in ("row_mask", "bank_mask"))
    writes = rows >> lane // 16 & banks >> lane % 16 // 4 & 1
    if modifiers.get("bound_ctrl", "1") not in ("0", "1"):  # LLVM reads both as set on these chips
        raise OperandError("bound_ctrl is 0 or 1")
    return LanePattern(source % LANES, exists, writes == 1, "bound_ctrl" in modifiers)


def _sources_of_lanes(control: str, value: str) -> tuple[npt.NDArray[np.int64], Mask]:
    """The lane that each lane reads from, and whether there is one."""
    lane = np.arange(LANES)
    row, within, all_exist = lane // 16 * 16, lane % 16, np.ones(LANES, dtype=np.bool_)
    if control == "quad_perm":
        chosen = [parse_integer(x.strip()) for x in value.strip("[]").split(",")]
        order = np.array([x for x in chosen if x is not None and 0 <= x < 4])
        if len(chosen) != 4 or len(order) != 4:
            raise OperandError(f"quad_perm has four lanes from 0 to 3, not {value}")
        return lane // 4 * 4 + order[lane % 4], all_exist
    if control == "row_mirror":
        return row + 15 - within, all_exist
    if control == "row_half_mirror":
        return lane // 8 * 8 + 7 - lane % 8, all_exist
    amount = parse_integer(value)
    if amount is None or amount not in _AMOUNTS[control]:
        raise OperandError(f"there is no {control} by {value}")
    if control == "row_ror":
        return row + (within - amount) % 16, all_exist
    if control == "row_newbcast":
        return row + amount, all_exist
    if control == "row_bcast":  # lane 15 of each row, or lane 31, to all of the next
        size = amount + 1
        return lane // size * size - 1, lane >= size
    if control in ("wave_ror", "wave_rol"):
        return (lane + (1 if control == "wave_rol" else -1)) % LANES, all_exist
    size = 16 if control.startswith("row") else LANES
    source = lane + (amount if control.endswith("shl") else -amount)
    return source, source // size == lane // size


def _four_bits(text: str) -> int:
    mask = parse_integer(text)
    if mask is None or mask not in range(16):
        raise OperandError(f"a mask of four bits, not {text}")
    return mask


@dataclass(frozen=True)
class SourceOperand:
    """`width` bits from bit `low` of an operand, as a number of type `kind`."""

    operand: Operand
    kind: str
    low: int = 0
    width: int = 0
    signed: bool = False
    lanes: LanePattern | None = None

    def read(self, waves: Waves) -> Array:
        """The number of each lane: (count, 64), or what broadcasts to it."""
        if not self.width and self.lanes is None:
            return waves.read_vector(self.operand, self.kind)
        operand = self.operand
        if not isinstance(operand, Register):
            bits = waves.read_vector(operand, "b32" if width_of(self.kind) < 64 else "b64")
            return self._typed(bits)
        plain = replace(operand, negate=False, absolute=False)
        wide = width_of(self.kind) == 64
        bits = self._moved(waves, waves.read_vector(plain, "b64" if wide else "b32"))
        return modified(self._typed(bits), operand)

    def read_bits(self, waves: Waves) -> Array:
        """The bits that are read, as an unsigned number, without the modifiers of floats."""
        operand = self.operand
        if isinstance(operand, Register):
            operand = replace(operand, negate=False, absolute=False)
        return replace(self, operand=operand, kind=f"b{width_of(self.kind)}").read(waves)

    def register_read(self) -> OperandRead | None:
        """What is read of which register; None for a constant."""
        if not isinstance(self.operand, Register):
            return None
        bits = ALL_BITS
        if self.width:
            bits = ((1 << self.width) - 1) << self.low
        elif width_of(self.kind) == 16:
            bits = 0xFFFF
        words = 2 if width_of(self.kind) == 64 else 1
        return OperandRead(replace(self.operand, count=words), bits)

    def _moved(self, waves: Waves, bits: Array) -> Array:
        return bits if self.lanes is None else self.lanes.move(waves, bits)

    def _typed(self, bits: Array) -> Array:
        if self.width and self.width < 32:
            bits = bits >> np.uint32(self.low) & np.uint32((1 << self.width) - 1)
            bits = sign_extended(bits, self.width) if self.signed else bits
        return typed(bits.astype(np.uint16) if width_of(self.kind) == 16 else bits, self.kind)


def sources_of(
    instruction: Instruction, kinds: Sequence[str], operands: Sequence[Operand]
) -> list[SourceOperand]:
    """The sources with their op_sel, SDWA selections and DPP pattern."""
    modifiers, pattern = instruction.modifiers, lane_pattern(instruction.modifiers)
    high = [*(instruction.written_flags("op_sel") or []), *[0] * (len(kinds) + 1)]
    sources = []
    for i, (operand, kind) in enumerate(zip(operands, kinds, strict=True)):
        low, width = 0, 0
        if kind == "u8":  # a byte of a word, which op_sel counts
            low, width = (8 * (2 * high[1] + high[0]) if "op_sel" in modifiers else 0), 8
        elif high[i] and width_of(kind) == 16:
            low, width = 16, 16
        if name := modifiers.get(f"src{i}_sel"):
            low, width = selection(name)
            width = min(width, 8) if kind == "u8" else width
        signed = isinstance(operand, Register) and operand.extend
        typed = "u32" if kind == "u8" else kind
        sources.append(
            SourceOperand(operand, typed, low, width, signed, pattern if i == 0 else None)
        )
    return sources


def reads_of_sources(sources: Sequence[SourceOperand]) -> tuple[OperandRead, ...]:
    """What sources read, as far as they are registers."""
    return tuple(read for source in sources if (read := source.register_read()) is not None)


def selection(name: str) -> tuple[int, int]:
    """The lowest bit and the width of an SDWA selection such as `WORD_1`.

    Raises OperandError if there is no such one.
    """
    if name not in _SELECTIONS:
        raise OperandError(f"SDWA does not select {name}")
    return _SELECTIONS[name]


def half_of(operand: Operand, kind: str, high: bool) -> SourceOperand:
    """One half of a register as a 16-bit number.

    A constant is that of 32 bits: above a float is 0, above an integer its sign (as LLVM splits
    vectors of halves into constants). Raises OperandError for a constant that is not inline.
    """
    check_source(operand, kind)
    if not isinstance(operand, Literal):
        return (
            SourceOperand(operand, kind, low=16, width=16) if high else SourceOperand(operand, kind)
        )
    if not operand.is_inline:
        raise OperandError(f"the constant {operand.text} is not inline")
    if not high:
        return SourceOperand(operand, kind)
    return SourceOperand(replace(operand, text="-1" if operand.is_negative_integer else "0"), kind)
