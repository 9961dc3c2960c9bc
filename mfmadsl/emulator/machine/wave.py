"""The registers of many waves that stand at one program counter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.error import EarlierAccess, EmulationError, Fault, OperandError
from mfmadsl.emulator.machine.bits import (
    Array,
    Mask,
    bits_of,
    constant,
    modified,
    typed,
    words_of,
)
from mfmadsl.emulator.machine.memory import Addresses, ByteStore, GlobalMemory, OwnedMemory
from mfmadsl.emulator.machine.width import Width
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
    from mfmadsl.emulator.text.assembly import Instruction

LANES = CDNA.wave_size
"""Lanes of a wave: the emulator knows CDNA's instructions only, whose waves are all alike."""

VCC_PAIR = Register("s", VCC, 2)
EXEC_PAIR = Register("s", EXEC, 2)


class AccessWatch:
    """Is called for every access to memory, just before it takes place, and does nothing itself.

    Offsets are those of the lanes of `mask` (of all, if it is None), in their order.
    """

    def loads(
        self, waves: Waves, store: ByteStore, offsets: Addresses, target: Register, width: Width,
        mask: Mask | None,
    ) -> None:  # fmt: skip
        """Lanes load into registers."""

    def stores(
        self, waves: Waves, store: ByteStore, offsets: Addresses, source: Register, width: Width,
        mask: Mask | None,
    ) -> None:  # fmt: skip
        """Lanes store registers."""

    def updates(
        self, waves: Waves, store: ByteStore, offsets: Addresses, source: Register, width: Width,
        mask: Mask | None,
    ) -> None:  # fmt: skip
        """Lanes read, combine and write, at once."""

    def fetches(self, waves: Waves, offsets: Addresses, width: Width, mask: Mask | None) -> None:
        """Lanes read global memory on its way to LDS."""

    def fills(self, waves: Waves, offsets: Addresses, size: int, mask: Mask | None) -> None:
        """Lanes write to LDS what they have fetched from global memory."""

    def clears(self, waves: Waves, target: Register, width: Width, mask: Mask) -> None:
        """Lanes whose load is out of a buffer's bounds get zeros."""

    def disputed(self, waves: Waves, message: str, wave: int, lane: int) -> None:
        """A lane is out of a buffer's bounds by one rule, and inside by another."""

    def misplaced(self, waves: Waves, message: str, wave: int) -> None:
        """An address of scalar memory has bits that do not count."""

    def scalar_loads(self, waves: Waves, offsets: Addresses, target: Register) -> None:
        """Waves load into scalar registers."""

    def scalar_stores(
        self, waves: Waves, chosen: npt.NDArray[np.int64], offsets: Addresses, words: int,
        updates: bool,
    ) -> None:  # fmt: skip
        """Chosen waves store scalar registers, or read, combine and write at once."""

    def writer(self, waves: Waves, store: ByteStore, offset: int) -> str:
        """Who has written last at an offset, and in which line; nothing where that is not known."""
        return ""

    def collects(self, waves: Waves, fault: Fault) -> bool:
        """Whether a fault is kept, so that the emulation goes on."""
        return False


@dataclass(frozen=True)
class WavePosition:
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
    whose lanes own pieces of `scratch`. `steps` counts the instructions executed so far, `returns`
    the branches back; `returned` says that the last instruction was one. `portion` is the number of
    those that started together.
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
    position: WavePosition
    watch: AccessWatch | None = None
    pc: int = 0
    steps: int = 0
    returns: int = 0
    returned: bool = False
    portion: int = 0
    _exec: Mask | None = field(default=None, repr=False)
    _exec_is_known: bool = field(default=True, repr=False)
    kept: Any = field(default=None, repr=False)
    """What whoever runs them keeps with them."""

    @property
    def count(self) -> int:
        """How many waves there are."""
        return len(self.scc)

    def exec_mask(self) -> Mask | None:
        """The active lanes, (count, 64), or None when all of them are."""
        if not self._exec_is_known:
            self.update_exec()
        return self._exec

    # Reading. A type is a letter, b, u, i or f, and a width; the result broadcasts to
    # (count, 64) for vector instructions and to (count,) for scalar ones.

    def read_vector(self, operand: Operand, kind: str) -> Array:
        """What a source of a vector instruction holds, as numbers of a type."""
        if isinstance(operand, Literal):
            return constant(operand, kind)
        operand = as_register(operand)
        if operand.bank == "s":
            return modified(typed(self._scalar_bits(operand, kind), kind)[..., None], operand)
        return modified(typed(bits_of(self._file(operand.bank), operand, kind), kind), operand)

    def read_scalar(self, operand: Operand, kind: str) -> Array:
        """What a source of a scalar instruction holds, as numbers of a type."""
        if isinstance(operand, Literal):
            return constant(operand, kind)
        operand = as_register(operand)
        return typed(self._scalar_bits(operand, kind), kind)

    def read_mask(self, operand: Operand) -> Mask:
        """A lane mask, (count, 64), from a pair of scalar registers."""
        pair = self.read_scalar(operand, "b64")
        pair = np.ascontiguousarray(np.broadcast_to(pair, (self.count,)))
        bits = np.unpackbits(pair.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
        return bits.astype(np.bool_)

    # Writing. Inactive lanes keep what they have.

    def write_vector(self, register: Operand, value: Array, only: Mask | None = None) -> None:
        """Put the result of a vector instruction, of any type, into one register or a pair.

        `only` narrows the lanes that take it further than EXEC does.
        """
        register = as_register(register)
        target = self._file(register.bank)
        lanes = self.exec_mask()
        if only is not None:
            lanes = only if lanes is None else lanes & only
        for offset, word in enumerate(words_of(value)):
            row = target[register.index + offset]
            if lanes is None:
                row[...] = word
            else:
                np.copyto(row, word, where=lanes)

    def write_scalar(self, register: Operand, value: Array) -> None:
        """Put the result of a scalar instruction into one register or a pair."""
        register = as_register(register)
        words = words_of(value)
        for offset, word in enumerate(words):
            self.scalar[register.index + offset] = word
        if register.index + len(words) > EXEC:
            self.update_exec()

    def write_mask(self, register: Operand, mask: Mask) -> None:
        """Put the result of a comparison into a pair of scalar registers: inactive lanes give 0."""
        lanes = self.exec_mask()
        if lanes is not None:
            mask = mask & lanes
        full = np.broadcast_to(mask, (self.count, LANES))
        packed = np.packbits(full, axis=1, bitorder="little")
        self.write_scalar(register, packed.view(np.uint64)[:, 0])

    def update_exec(self) -> None:
        """Follow a change of the EXEC registers."""
        pair = self.scalar[EXEC : EXEC + 2]
        full = bool((pair == 0xFFFF_FFFF).all())
        self._exec = None if full else self.read_mask(EXEC_PAIR)
        self._exec_is_known = True

    def forget_exec(self) -> None:
        """The EXEC registers have changed: whoever asks for active lanes looks there."""
        self._exec_is_known = False

    def fault(
        self,
        kind: str,
        message: str,
        wave: int | None = None,
        lane: int | None = None,
        *,
        earlier: EarlierAccess | None = None,
        at: Instruction | None = None,
    ) -> None:
        """Tell what one of the waves did wrong, at its current instruction or `at` another one.

        Raises EmulationError, unless whoever watches collects faults to go on.
        """
        group, number = (None, None) if wave is None else self.position.of(int(self.index[wave]))
        line, text = (None, None) if at is None else (at.line, at.text)
        fault = Fault(kind, message, line, text, group, number, lane, earlier)
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
            np.compress(chosen, self.vector, 1),
            np.compress(chosen, self.accumulation, 1),
            np.compress(chosen, self.scalar, 1),
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
            self.returns,
            self.returned,
            self.portion,
        )
        waves.update_exec()
        return waves

    def join(self, other: Waves) -> Waves:
        """This group and another at its program counter as one, in the order of their indices."""
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
            max(self.returns, other.returns),
            portion=self.portion,
        )
        waves.update_exec()
        return waves

    def _file(self, bank: str) -> npt.NDArray[np.uint32]:
        return self.vector if bank == "v" else self.accumulation

    def _scalar_bits(self, register: Register, kind: str) -> Array:
        if register.bank != "s":
            raise OperandError("a vector register is no scalar source")
        return bits_of(self.scalar, register, kind)


def new_waves(
    count: int,
    vector: int,
    accumulation: int,
    workgroup: npt.NDArray[np.int64],
    lds: OwnedMemory,
    scratch: OwnedMemory,
    memory: GlobalMemory,
    position: WavePosition,
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
    )
