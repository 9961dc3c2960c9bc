"""A source of a vector instruction: a register, the part of it that counts, and whose lane's.

Sources: CDNA3 ISA, section 12.16 (SDWA and DPP), and the LLVM AMDGPU operand syntax.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.operand import Literal, Operand, Register
from mfmadsl.emulator.operation import ALL_BITS, Read
from mfmadsl.emulator.wave import LANES, Array, Mask, Waves, width_of

DPP_MODIFIERS = frozenset(
    [
        "quad_perm",
        "row_shl",
        "row_shr",
        "row_ror",
        "row_mirror",
        "row_half_mirror",
        "row_bcast",
        "row_newbcast",
        "wave_shl",
        "wave_shr",
        "wave_rol",
        "wave_ror",
        "row_mask",
        "bank_mask",
        "bound_ctrl",
    ]
)
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

    def written(self, waves: Waves) -> Mask:
        """(count, 64): lanes whose result is kept."""
        writes = np.broadcast_to(self.writes, (waves.count, LANES))
        return writes if self.zero_fill else writes & self._readable(waves)

    def move(self, waves: Waves, bits: Array) -> Array:
        moved = np.broadcast_to(bits, (waves.count, LANES))[:, self.source]
        return np.where(self._readable(waves), moved, moved.dtype.type(0))

    def _readable(self, waves: Waves) -> Mask:
        mask = waves.exec_mask()
        exists = np.broadcast_to(self.exists, (waves.count, LANES))
        return exists if mask is None else exists & mask[:, self.source]


def lane_pattern(modifiers: Mapping[str, str]) -> LanePattern | None:
    """The pattern that DPP modifiers describe, or None where there are none."""
    if not DPP_MODIFIERS & set(modifiers):
        return None
    lane = np.arange(LANES)
    row, within = lane // 16 * 16, lane % 16
    source, exists = lane, np.ones(LANES, dtype=np.bool_)
    if "quad_perm" in modifiers:
        order = np.array([int(x) for x in modifiers["quad_perm"].strip("[]").split(",")])
        source = lane // 4 * 4 + order[lane % 4]
    elif "row_mirror" in modifiers:
        source = row + 15 - within
    elif "row_half_mirror" in modifiers:
        source = lane // 8 * 8 + 7 - lane % 8
    elif "row_ror" in modifiers:
        source = row + (within - int(modifiers["row_ror"])) % 16
    elif "row_newbcast" in modifiers:
        source = row + int(modifiers["row_newbcast"])
    elif "row_bcast" in modifiers:  # lane 15 of each row, or lane 31, to all of the next
        size = int(modifiers["row_bcast"]) + 1
        source, exists = lane // size * size - 1, lane >= size
    elif "wave_ror" in modifiers:
        source = (lane - 1) % LANES
    elif "wave_rol" in modifiers:
        source = (lane + 1) % LANES
    else:
        for name, size, sign in (
            ("row_shl", 16, 1),
            ("row_shr", 16, -1),
            ("wave_shl", LANES, 1),
            ("wave_shr", LANES, -1),
        ):
            if name in modifiers:
                source = lane + sign * int(modifiers[name])
                exists = source // size == lane // size
    rows = int(modifiers.get("row_mask", "0xf"), 0) >> lane // 16 & 1
    banks = int(modifiers.get("bank_mask", "0xf"), 0) >> lane % 16 // 4 & 1
    return LanePattern(source % LANES, exists, (rows & banks) == 1, "bound_ctrl" in modifiers)


@dataclass(frozen=True)
class Source:
    """`width` bits from bit `low` of an operand, as a number of type `kind`."""

    operand: Operand
    kind: str
    low: int = 0
    width: int = 0
    signed: bool = False
    lanes: LanePattern | None = None

    def read(self, waves: Waves) -> Array:
        if not self.width and self.lanes is None:
            return waves.read_vector(self.operand, self.kind)
        operand = self.operand
        if not isinstance(operand, Register):
            bits = waves.read_vector(operand, "b32" if width_of(self.kind) < 64 else "b64")
            return self._typed(bits)
        plain = replace(operand, negate=False, absolute=False)
        wide = width_of(self.kind) == 64
        value = self._typed(self._moved(waves, waves.read_vector(plain, "b64" if wide else "b32")))
        value = np.abs(value) if operand.absolute else value
        return -value if operand.negate else value

    def read_bits(self, waves: Waves) -> Array:
        """The same bits as an unsigned number, without the modifiers of floats."""
        operand = self.operand
        if isinstance(operand, Register):
            operand = replace(operand, negate=False, absolute=False)
        return replace(self, operand=operand, kind=f"b{width_of(self.kind)}").read(waves)

    def register_read(self) -> Read | None:
        """What is read of which register; None for a constant."""
        if not isinstance(self.operand, Register):
            return None
        bits = ALL_BITS
        if self.width:
            bits = ((1 << self.width) - 1) << self.low
        elif width_of(self.kind) == 16:
            bits = 0xFFFF
        words = 2 if width_of(self.kind) == 64 else 1
        return Read(replace(self.operand, count=words), bits)

    def _moved(self, waves: Waves, bits: Array) -> Array:
        return bits if self.lanes is None else self.lanes.move(waves, bits)

    def _typed(self, bits: Array) -> Array:
        dtype = {"u": np.uint32, "b": np.uint32, "i": np.int32, "f": np.float32}[self.kind[0]]
        size = width_of(self.kind)
        if size == 64:
            return bits.view({"f": np.float64, "i": np.int64}.get(self.kind[0], np.uint64))
        if self.width and self.width < 32:
            bits = bits >> np.uint32(self.low) & np.uint32((1 << self.width) - 1)
            if self.signed:
                sign = np.uint32(1 << (self.width - 1))
                bits = (bits ^ sign) - sign
        if size == 16:
            narrow = {"u": np.uint16, "b": np.uint16, "i": np.int16, "f": np.float16}
            return bits.astype(np.uint16).view(narrow[self.kind[0]])
        return bits.view(dtype)


def selection(name: str) -> tuple[int, int]:
    """The lowest bit and the width of an SDWA selection such as `WORD_1`."""
    return _SELECTIONS[name]


def half_of(operand: Operand, kind: str, high: bool) -> Source:
    """One half of a register as a 16-bit number; a constant's halves are what it says."""
    if isinstance(operand, Literal):
        return Source(operand, kind)
    return Source(operand, kind, low=16, width=16) if high else Source(operand, kind)
