"""Scalar stores and atomics: words of a wave, at one address (CDNA3 ISA, chapter 8).

The scalar cache that they go through is not modelled: what is stored is there at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Literal as OneOf

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.instructions.atomic import Update, find_memory_update
from mfmadsl.emulator.instructions.smem import (
    SMEM_FLAGS,
    check_scalar_data,
    constant_offset,
    reach_scalar,
    scalar_displacement,
    whole_words,
)
from mfmadsl.emulator.machine.bits import Array, pair_of_words
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import OperandRead, Operation, reads_of
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Operand, Register, check_registers

SCALAR_ATOMICS = (
    "swap", "cmpswap", "add", "sub", "smin", "umin", "smax", "umax", "and", "or", "xor", "inc",
    "dec",
)  # fmt: skip
_STORE = re.compile(r"s_(buffer_)?store_dword(x2|x4|)")
_ATOMIC = re.compile(rf"s_(buffer_)?atomic_({'|'.join(SCALAR_ATOMICS)})(_x2)?")
_WORD = 4


@dataclass(frozen=True)
class _Place:
    """Where each wave accesses memory: behind a base, or within the buffer of a descriptor."""

    base: Register
    offset: Operand
    constant: np.uint64

    @property
    def reads(self) -> tuple[OperandRead, ...]:
        return reads_of(self.base, self.offset)

    def reach(
        self, waves: Waves, words: int, first: int = 0
    ) -> tuple[npt.NDArray[np.int64], Array]:
        """The waves that reach some words, from the first on, and their offsets in memory."""
        size = _WORD * words
        at = scalar_displacement(waves, self.offset, self.constant) + np.uint64(_WORD * first)
        if self.base.count == 2:
            start = whole_words(waves, waves.read_scalar(self.base, "u64"))
            inside = np.ones(waves.count, np.bool_)
        else:
            low, high, limit, _ = waves.scalar[self.base.index : self.base.index + 4]
            start = pair_of_words(low, high & np.uint32(0xFFFF))
            inside = at + np.uint64(size) <= limit
        chosen = np.flatnonzero(inside)
        return chosen, reach_scalar(waves, (start + at)[inside], chosen, size)


def compile_smem_write(instruction: Instruction, machine: Machine) -> Operation | None:
    """What a scalar store or atomic does, or None if it is neither."""
    del machine
    match = _STORE.fullmatch(instruction.name) or _ATOMIC.fullmatch(instruction.name)
    if match is None or set(instruction.modifiers) - SMEM_FLAGS:
        return None
    first, second, offset = instruction.taking(3)
    place = _Place(
        check_registers(second, 4 if match[1] else 2, "s"),
        offset,
        constant_offset(instruction, offset, signed=not match[1]),
    )
    if match.re is _STORE:
        return _store(check_scalar_data(first, int(match[2][1:] or 1)), place)
    update = find_memory_update(match[2], match[3])
    assert update is not None
    data = check_scalar_data(first, update.words * update.atomic.values)
    return _atomic(data, place, update, returns="glc" in instruction.modifiers)


def _store(data: Register, place: _Place) -> Operation:
    # Of a buffer each word is checked by itself, as those of a load are.
    pieces = [data] if place.base.count == 2 else [_part(data, i, 1) for i in range(data.count)]

    def execute(waves: Waves) -> None:
        for piece in pieces:
            chosen, offsets = place.reach(waves, piece.count, piece.index - data.index)
            _tell(waves, chosen, offsets, piece.count, "store")
            values = waves.scalar[piece.index : piece.index + piece.count, chosen]
            waves.memory.store_words(offsets, values)  # of two waves at one address, the last's

    return Operation(execute, "smem", (*reads_of(data), *place.reads))


def _atomic(data: Register, place: _Place, update: Update, returns: bool) -> Operation:
    """Waves one after the other; the second half of the data is what `cmpswap` compares with."""
    words = update.words
    parts = [_part(data, i, words) for i in range(0, data.count, words)]

    def execute(waves: Waves) -> None:
        chosen, offsets = place.reach(waves, words)
        _tell(waves, chosen, offsets, words, "update")
        number = partial(_number, update)
        before = np.zeros((words, waves.count), np.uint32)  # beyond a buffer there are zeros
        for wave, offset in zip(chosen, offsets, strict=True):
            at = np.array([offset])
            old = waves.memory.load_words(at, words)[:, 0]
            values = [number(waves.scalar[p.index : p.index + words, wave]) for p in parts]
            new = np.asarray(update.atomic.combine(number(old), *values)).astype(update.dtype)
            waves.memory.store_words(at, np.ascontiguousarray(new).view(np.uint32)[:, None])
            before[:, wave] = old
        if returns:
            waves.scalar[data.index : data.index + words] = before

    reads = (*reads_of(data), *place.reads)
    return Operation(execute, "smem", reads, (parts[0],) if returns else ())


def _part(register: Register, first: int, count: int) -> Register:
    return Register(register.bank, register.index + first, count)


def _number(update: Update, words: Array) -> Array:
    """A number of the update's type, in an array of its own."""
    return np.ascontiguousarray(words).view(update.dtype)


def _tell(
    waves: Waves, chosen: Array, offsets: Array, words: int, kind: OneOf["store", "update"]
) -> None:
    if waves.watch is not None:
        waves.watch.scalar_stores(waves, chosen, offsets, words, updates=kind == "update")
