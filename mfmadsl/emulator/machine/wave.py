"""The registers of many waves that stand at one program counter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.error import EmulationError, Fault, OperandError
from mfmadsl.emulator.machine.memory import GlobalMemory, OwnedMemory
from mfmadsl.emulator.text.operand import (
    EXEC,
    SCALAR_REGISTERS,
    VCC,
    Literal,
    Operand,
    Register,
    as_register,
)
from mfmadsl.model import CDNA

if TYPE_CHECKING:
    from mfmadsl.emulator.machine.watch import Watch

LANES = CDNA.wave_size
"""Of a wave: the emulator knows CDNA's instructions only, whose waves are all alike."""

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

_DTYPES = {
    "b16": np.uint16,
    "b32": np.uint32,
    "b64": np.uint64,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
}


@dataclass(frozen=True)
class Position:
    """Which workgroups the waves belong to: their numbers in a grid of (x, y, z)."""

    groups: npt.NDArray[np.int64]
    waves_per_group: int
    grid: tuple[int, int, int]

    def of(self, wave: int) -> tuple[tuple[int, int, int], int]:
        """The workgroup of a wave, and the wave's number in it."""
        group, number = divmod(wave, self.waves_per_group)
        index = int(self.groups[group])
        x, y, _ = self.grid
        return (index % x, index // x % y, index // (x * y)), number


@dataclass
class Waves:
    """`count` waves: vector registers of shape (registers, count, 64), scalar (registers, count).

    An operation on a register is one NumPy operation over all waves. `scc` is the scalar condition
    code, `workgroup` the index of each wave's workgroup in `lds`, `index` that of the wave itself,
    whose lanes own pieces of `scratch`. `steps` counts the instructions executed so far.
    """

    vector: npt.NDArray[np.uint32]
    accumulation: npt.NDArray[np.uint32]
    scalar: npt.NDArray[np.uint32]
    scc: Mask
    workgroup: npt.NDArray[np.int64]
    index: npt.NDArray[np.int64]
    lds: OwnedMemory
    scratch: OwnedMemory
    memory: GlobalMemory
    position: Position
    watch: Watch | None = None
    pc: int = 0
    steps: int = 0
    _exec: Mask | None = field(default=None, repr=False)

    @property
    def count(self) -> int:
        return len(self.scc)

    def exec_mask(self) -> Mask | None:
        """The active lanes, (count, 64), or None when all of them are."""
        return self._exec

    # Reading. A type is a letter, b, u, i or f, and a width; the result broadcasts to
    # (count, 64) for vector instructions and to (count,) for scalar ones.

    def read_vector(self, operand: Operand, kind: str) -> Array:
        """A source of a vector instruction."""
        if isinstance(operand, Literal):
            return _constant(operand, kind)
        operand = as_register(operand)
        if operand.bank == "s":
            return _modified(_typed(self._scalar_bits(operand, kind), kind)[..., None], operand)
        return _modified(_typed(_bits(self._file(operand.bank), operand, kind), kind), operand)

    def read_scalar(self, operand: Operand, kind: str) -> Array:
        """A source of a scalar instruction."""
        if isinstance(operand, Literal):
            return _constant(operand, kind)
        operand = as_register(operand)
        return _typed(self._scalar_bits(operand, kind), kind)

    def read_mask(self, operand: Operand) -> Mask:
        """A lane mask, (count, 64), from a pair of scalar registers."""
        pair = self.read_scalar(operand, "b64")
        pair = np.ascontiguousarray(np.broadcast_to(pair, (self.count,)))
        bits = np.unpackbits(pair.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
        return bits.astype(np.bool_)

    # Writing. Inactive lanes keep what they have.

    def write_vector(self, register: Operand, value: Array, only: Mask | None = None) -> None:
        """The result of a vector instruction, of any type, into one register or a pair.

        `only` narrows the lanes that take it further than EXEC does.
        """
        register = as_register(register)
        target = self._file(register.bank)
        lanes = self._exec
        if only is not None:
            lanes = only if lanes is None else lanes & only
        for offset, word in enumerate(_words(value)):
            row = target[register.index + offset]
            if lanes is None:
                row[...] = word
            else:
                np.copyto(row, word, where=lanes)

    def write_scalar(self, register: Operand, value: Array) -> None:
        """The result of a scalar instruction."""
        register = as_register(register)
        words = _words(value)
        for offset, word in enumerate(words):
            self.scalar[register.index + offset] = word
        if register.index + len(words) > EXEC:
            self.update_exec()

    def write_mask(self, register: Operand, mask: Mask) -> None:
        """The result of a comparison: inactive lanes give 0."""
        if self._exec is not None:
            mask = mask & self._exec
        full = np.broadcast_to(mask, (self.count, LANES))
        packed = np.packbits(full, axis=1, bitorder="little")
        self.write_scalar(register, packed.view(np.uint64)[:, 0])

    def update_exec(self) -> None:
        """Follow a change of the EXEC registers."""
        pair = self.scalar[EXEC : EXEC + 2]
        full = bool((pair == 0xFFFF_FFFF).all())
        self._exec = None if full else self.read_mask(Register("s", EXEC, 2))

    def fault(
        self, kind: str, message: str, wave: int | None = None, lane: int | None = None
    ) -> None:
        """Tell what one of the waves did wrong, at its current instruction.

        Raises EmulationError, unless whoever watches collects faults to go on.
        """
        group, number = (None, None) if wave is None else self.position.of(int(self.index[wave]))
        fault = Fault(kind, message, workgroup=group, wave=number, lane=lane)
        if self.watch is None or not self.watch.collects(self, fault):
            raise EmulationError.of(fault)

    def lanes_of(self, mask: Mask | None) -> Mask:
        """A mask of lanes, (count, 64); None stands for all of them."""
        return np.ones((self.count, LANES), dtype=np.bool_) if mask is None else mask

    def first_lane(self, mask: Mask | None, bad: Array) -> tuple[int, int]:
        """The wave and lane of the first of the lanes of `mask` for which `bad` holds."""
        wave, lane = np.argwhere(self.lanes_of(mask))[bad.reshape(-1)][0]
        return int(wave), int(lane)

    # Splitting and joining, when a branch diverges.

    def select(self, chosen: Mask, pc: int) -> Waves:
        """The chosen waves, at another program counter."""
        waves = Waves(
            self.vector[:, chosen],
            self.accumulation[:, chosen],
            self.scalar[:, chosen],
            self.scc[chosen],
            self.workgroup[chosen],
            self.index[chosen],
            self.lds,
            self.scratch,
            self.memory,
            self.position,
            self.watch,
            pc,
            self.steps,
        )
        waves.update_exec()
        return waves

    def join(self, other: Waves) -> Waves:
        """Both groups as one, in the order of their indices; they stand at one program counter."""
        order = np.argsort(np.concatenate([self.index, other.index]))
        in_order = bool((order[:-1] < order[1:]).all())

        def both(one: Array, another: Array, axis: int = 0) -> Array:
            whole = np.concatenate([one, another], axis)
            return whole if in_order else np.take(whole, order, axis)

        waves = Waves(
            both(self.vector, other.vector, 1),
            both(self.accumulation, other.accumulation, 1),
            both(self.scalar, other.scalar, 1),
            both(self.scc, other.scc),
            both(self.workgroup, other.workgroup),
            both(self.index, other.index),
            self.lds,
            self.scratch,
            self.memory,
            self.position,
            self.watch,
            self.pc,
            max(self.steps, other.steps),
        )
        waves.update_exec()
        return waves

    def _file(self, bank: str) -> npt.NDArray[np.uint32]:
        return self.vector if bank == "v" else self.accumulation

    def _scalar_bits(self, register: Register, kind: str) -> Array:
        if register.bank != "s":
            raise OperandError("a vector register is no scalar source")
        return _bits(self.scalar, register, kind)


def new_waves(
    count: int,
    vector: int,
    accumulation: int,
    workgroup: npt.NDArray[np.int64],
    lds: OwnedMemory,
    scratch: OwnedMemory,
    memory: GlobalMemory,
    position: Position,
    watch: Watch | None = None,
) -> Waves:
    """Waves as the hardware starts them: all lanes active, registers not yet set."""
    scalar = np.zeros((SCALAR_REGISTERS, count), dtype=np.uint32)
    scalar[EXEC : EXEC + 2] = 0xFFFF_FFFF
    return Waves(
        np.zeros((vector, count, LANES), dtype=np.uint32),
        np.zeros((accumulation, count, LANES), dtype=np.uint32),
        scalar,
        np.zeros(count, dtype=np.bool_),
        workgroup,
        np.arange(count),
        lds,
        scratch,
        memory,
        position,
        watch,
    )


VCC_PAIR = Register("s", VCC, 2)


def width_of(kind: str) -> int:
    """Bits of a type such as `f16`."""
    return int(kind[1:])


def dtype_of(kind: str) -> np.dtype[Any]:
    """The NumPy type of a type such as `f16`."""
    return np.dtype(_DTYPES[kind])


def _bits(file: npt.NDArray[np.uint32], register: Register, kind: str) -> Array:
    low = file[register.index]
    if width_of(kind) == 16:
        return low.astype(np.uint16)
    if width_of(kind) == 32:
        return low
    high = file[register.index + 1].astype(np.uint64)
    return low | high << np.uint64(32)


def _typed(bits: Array, kind: str) -> Array:
    return bits.view(_DTYPES[kind])


def _constant(literal: Literal, kind: str) -> Array:
    width = width_of(kind)
    bits = literal.bits(width, floating=kind[0] == "f", signed=kind[0] == "i")
    unsigned = _DTYPES[f"u{width}"]
    return np.array(bits, dtype=unsigned).view(_DTYPES[kind])


def _modified(value: Array, register: Register) -> Array:
    if register.absolute:
        value = np.abs(value)
    return -value if register.negate else value


def _words(value: Array) -> list[Array]:
    """A result of any type as 32-bit words, low one first; 16-bit results clear the upper half."""
    size = value.dtype.itemsize
    if size == 4:
        return [value.view(np.uint32)]
    if size == 2:
        return [value.view(np.uint16).astype(np.uint32)]
    bits = value.view(np.uint64)
    return [bits.astype(np.uint32), (bits >> np.uint64(32)).astype(np.uint32)]
