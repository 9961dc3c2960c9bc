"""Bits of registers and memory that nobody has written.

Every register that may hold such bits has a shadow: a mask of them for each wave and lane. A
register without one is defined. Instructions that only move bits move the shadow with them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.machine.bits import Array, Mask, words_of
from mfmadsl.emulator.machine.memory import Addresses, ByteStore, GlobalMemory, Segment, zeros
from mfmadsl.emulator.machine.operation import ALL_BITS, OperandRead, Operation
from mfmadsl.emulator.machine.wave import LANES, Waves
from mfmadsl.emulator.machine.width import Width
from mfmadsl.emulator.sanitizer.in_flight import Selected
from mfmadsl.emulator.sanitizer.moved import not_padding, undefined_of, wholly
from mfmadsl.emulator.text.operand import (
    EXEC,
    MODE,
    SCALAR_REGISTERS,
    VCC,
    Literal,
    Operand,
    Register,
)

Shadow = npt.NDArray[np.uint32]
SCC = ("scc", 0)
_ONCE_A_WAVE = ("s", "scc")
_EXEC = (("s", EXEC), ("s", EXEC + 1))
_HARDWARE_SETS = {102, 103, 104, 105, EXEC, EXEC + 1, *range(MODE, SCALAR_REGISTERS)}
"""Flat scratch, the XNACK mask, EXEC, and what is behind it."""


class _ShadowWaves(Waves):
    """Waves whose registers hold their own undefined bits; constants have none."""

    def read_vector(self, operand: Operand, kind: str) -> Array:
        zero = isinstance(operand, Literal)
        return super().read_vector(Literal("0") if zero else operand, kind)

    def read_scalar(self, operand: Operand, kind: str) -> Array:
        zero = isinstance(operand, Literal)
        return super().read_scalar(Literal("0") if zero else operand, kind)


class _ShadowFile:
    """The shadows of one bank, of the waves of a group, in place of a register file."""

    def __init__(self, shadows: Undefined, bank: str, chosen: Selected) -> None:
        self._shadows, self._bank, self._chosen = shadows, bank, chosen

    def __getitem__(self, index: int) -> Shadow:
        return self._shadows.of(self._bank, index, self._chosen)


class Undefined:
    """What is undefined in the registers of all waves, and in the memory that they share."""

    def __init__(
        self, waves: Waves, vectors: int, scalars: int, memory: ByteStore | None = None,
        follows: bool = False,
    ) -> None:  # fmt: skip
        """The hardware has set so many vector and scalar registers, and nobody has written to LDS
        and scratch memory. `memory` is the shadow of global memory, where some of it is undefined.
        One that `follows` what is loaded tells of it where it is used, and may move it anywhere.
        """
        self._count = waves.count
        self._shadows: dict[tuple[str, int], Shadow] = {}
        everything = np.full((waves.count, LANES), ALL_BITS, np.uint32)
        everything.flags.writeable = False
        once = everything[:, 0]
        for bank, file, first in (("v", waves.vector, vectors), ("a", waves.accumulation, 0)):
            for index in range(first, len(file)):
                self._shadows[bank, index] = everything
        for index in range(scalars, SCALAR_REGISTERS):
            if index not in _HARDWARE_SETS:
                self._shadows["s", index] = once
        self._shadows[SCC] = once
        self.version = 0  # of which registers have shadows
        self._result: Shadow | None = None
        self._moved: set[tuple[str, int]] = set()  # registers whose undefined bits were loaded
        self._follows, self._from = follows, ""
        self._places: dict[tuple[str, int], str] = {}  # from where, where that is known
        self._memory = {id(store): _undefined(store) for store in (waves.lds, waves.scratch)}
        if memory is not None:
            self._memory[id(waves.memory)] = memory

    def of(self, bank: str, index: int, chosen: Selected) -> Shadow:
        """The undefined bits of a register: (waves,) of a scalar, (waves, 64) of a vector."""
        shadow = self._shadows.get((bank, index))
        if shadow is not None:
            return shadow[chosen]
        count = self._count if isinstance(chosen, slice) else len(chosen)
        return np.zeros(count if bank in _ONCE_A_WAVE else (count, LANES), np.uint32)

    def shadow(self, key: tuple[str, int]) -> Shadow | None:
        """That of a register of all waves; None if it has none."""
        return self._shadows.get(key)

    def was_moved(self, key: tuple[str, int]) -> bool:
        """Whether undefined bits of a register are some that were loaded."""
        return key in self._moved

    def define(self, chosen: Selected, key: tuple[str, int], mask: Mask | None) -> None:
        """A register is defined now in some lanes; in all of them without a mask."""
        if mask is None and isinstance(chosen, slice):
            self.version += self._shadows.pop(key, None) is not None
            self._moved.discard(key)
        else:
            self._put(chosen, key, np.zeros(1, np.uint32), mask)
        self._places.pop(key, None)

    def shadow_address(self, store: ByteStore) -> int:
        """Where the shadow of memory lies, or 0."""
        shadow = self._memory.get(id(store))
        return 0 if shadow is None else shadow.address

    # Registers.

    def check_reads(self, waves: Waves, chosen: Selected, operation: Operation) -> None:
        """Tell a fault where undefined bits are used, and follow those that are only moved."""
        self._result = None
        moved, mask = False, waves.exec_mask()
        for each in operation.reads:
            register = each.register
            for place, index in enumerate(register.indices):
                shadow = self._shadows.get((register.bank, index))
                if shadow is None:
                    continue
                bad = shadow[chosen] & np.uint32(each.bits)
                if each.lanes:
                    bad = bad & waves.scalar[EXEC + place]
                if register.bank != "s" and mask is not None and not operation.whole_wave:
                    bad = np.where(mask, bad, 0)
                if bad.any():
                    if each.moved:
                        moved = True
                    else:
                        self._tell(waves, f"reads {self._named(register.bank, index)}", bad)
        if operation.takes_scc:
            # A carry of undefined bits makes a sum undefined; one that is none is a fault.
            self._check_scc(waves, chosen, np.uint32(ALL_BITS if operation.carries else 0))
            moved = moved or (operation.carries and SCC in self._shadows)
        if moved and operation.flow is not None:
            files = {"vector": "v", "accumulation": "a", "scalar": "s"}
            shadows: Any = {name: _ShadowFile(self, bank, chosen) for name, bank in files.items()}
            shadows["scc"] = self.of(*SCC, chosen) != 0
            shadow_waves = _ShadowWaves(**{**waves.__dict__, **shadows})
            self._result = np.asarray(operation.flow(waves, shadow_waves))

    def _named(self, bank: str, index: int) -> str:
        """A register, and where its content comes from, if that is known."""
        key = bank, index
        place = self._places.get(key) if key in self._moved else None
        return f"{bank}{index}" + (f", loaded from {place}" if place else "")

    def check_branch(self, waves: Waves, chosen: Selected, name: str) -> None:
        """Tell a fault where a branch depends on what nobody wrote."""
        if name in ("s_cbranch_scc0", "s_cbranch_scc1"):
            self._check_scc(waves, chosen, np.uint32(0))
        elif name in ("s_cbranch_vccz", "s_cbranch_vccnz"):
            undefined = np.stack([self.of("s", VCC + word, chosen) for word in (0, 1)])
            if undefined.any():
                bad = _may_be_zero(waves.scalar[VCC : VCC + 2], undefined)
                if bad.any():
                    self._tell(waves, "reads vcc", bad)

    def _check_scc(self, waves: Waves, chosen: Selected, least: np.uint32) -> None:
        undefined = self.of(*SCC, chosen)
        bad = (undefined != 0) & (undefined >= least)
        if bad.any():
            self._tell(waves, "reads SCC", bad)

    @staticmethod
    def _tell(waves: Waves, what: str, bad: Array) -> None:
        wave, *lane = (int(x) for x in np.argwhere(bad)[0])
        waves.fault("uninitialized", f"{what}, which nobody wrote", wave, *lane)

    def written(self, waves: Waves, chosen: Selected, operation: Operation) -> None:
        """The target registers are defined now, but for bits that were only moved there."""
        words = words_of(self._result) if self._result is not None else []
        moved = any(
            (each.register.bank, index) in self._moved
            for each in operation.reads
            for index in each.register.indices
        )
        position = 0
        for register in operation.writes:
            for index in register.indices:
                word = words[position] if position < len(words) else None
                position += 1
                key = (register.bank, index)
                if key in _EXEC and word is not None and word.any():
                    self._tell(waves, "gives EXEC bits", word)
                    continue
                if word is None:
                    kept = _kept(operation.reads, register)
                    if key not in self._shadows:
                        continue
                    word = self.of(*key, chosen) & np.uint32(kept)
                self._set(waves, chosen, key, word, operation.whole_wave)
                self._places.pop(key, None)
                if moved and key in self._shadows:
                    self._moved.add(key)
        if operation.gives_scc:
            undefined = np.zeros(waves.count, np.uint32)
            if words:
                result = operation.writes[0]
                values = waves.scalar[result.index : result.index + result.count]
                bits = np.stack(words[: result.count])
                undefined |= bits.any(axis=0) if operation.carries else _may_be_zero(values, bits)
            self._set(waves, chosen, SCC, undefined, whole=False)

    def _set(
        self, waves: Waves, chosen: Selected, key: tuple[str, int], word: Array, whole: bool
    ) -> None:
        once = key[0] in _ONCE_A_WAVE
        mask = None if once or whole else waves.exec_mask()
        self._put(chosen, key, word, mask)

    def _put(self, chosen: Selected, key: tuple[str, int], word: Array, mask: Mask | None) -> None:
        once = key[0] in _ONCE_A_WAVE
        old = self._shadows.get(key)
        if old is None:
            if not word.any():
                return
            shape = (self._count,) if once else (self._count, LANES)
            new = np.zeros(shape, np.uint32)
        else:
            new = old.copy()
        new[chosen] = word if mask is None else np.where(mask, word, new[chosen])
        if new.any():
            self._shadows[key] = new
        else:
            self._shadows.pop(key, None)
            self._moved.discard(key)
        self.version += (old is None) != (key not in self._shadows)

    # Memory: a second one of the same size, whose bytes hold the undefined bits.

    def load(
        self, waves: Waves, store: ByteStore, offsets: Addresses, width: Width,
        mask: Mask | None, used: bool = False,
    ) -> Shadow | None:  # fmt: skip
        """The undefined bits of what lanes load, if there are any; with `used`, none may be."""
        shadow = self._memory.get(id(store))
        if shadow is None:
            return None
        bits = undefined_of(shadow, offsets, width)
        if not bits.any():
            return None
        if store is not waves.scratch:
            bad = bits.any(axis=0) if used else wholly(bits, width)
            if self._follows and not used:
                some = bits.any(axis=0).reshape(-1)
                self._from = self._place(waves, store, offsets, some)
            elif bad.any():
                self._tell_load(waves, store, offsets, mask, bad.reshape(-1))
                bits = np.where(bad, np.uint32(0), bits)
        return bits

    @staticmethod
    def _tell_load(
        waves: Waves, store: ByteStore, offsets: Addresses, mask: Mask | None, bad: Mask
    ) -> None:
        place = Undefined._place(waves, store, offsets, bad)
        where = waves.first_lane(mask, bad)
        waves.fault("uninitialized", f"reads {place}, which nobody wrote", *where)

    @staticmethod
    def _place(waves: Waves, store: ByteStore, offsets: Addresses, bad: Mask) -> str:
        """Where the first of the lanes that are marked loads from."""
        offset = int(offsets.reshape(-1)[bad][0])
        if store is waves.memory:
            return waves.memory.describe(offset)
        return f"address {offset % waves.lds.stride:#x} of LDS"

    def scalar_load(
        self, waves: Waves, chosen: npt.NDArray[np.int64], offsets: Addresses, words: int
    ) -> None:
        """Tell a fault where chosen waves read global memory that nobody wrote."""
        shadow = self._memory.get(id(waves.memory))
        if shadow is not None and (bad := shadow.load_words(offsets, words).any(axis=0)).any():
            place = waves.memory.describe(int(offsets[bad][0]))
            message = f"reads {place}, which nobody wrote"
            waves.fault("uninitialized", message, int(chosen[bad][0]))

    def loaded(
        self, waves: Waves, chosen: Selected, target: Register, bits: Shadow, mask: Mask | None
    ) -> None:
        """What lanes have loaded is undefined in these bits."""
        for i, word in enumerate(bits):
            key = target.bank, target.index + i
            full = np.zeros((waves.count, LANES), np.uint32)
            if mask is None:
                full[...] = word
            else:
                full[mask] = word
            self._set(waves, chosen, key, full, whole=False)
            if word.any():
                self._moved.add(key)
                self._places[key] = self._from
        self._from = ""

    def store(
        self, waves: Waves, chosen: Selected, store: ByteStore, offsets: Addresses,
        source: Register, width: Width, mask: Mask | None,
    ) -> None:  # fmt: skip
        """Lanes store registers: into scratch memory with all their undefined bits, elsewhere with
        those of padding."""
        keys = [(source.bank, source.index + i) for i in range(width.registers)]
        shadow = self._memory.get(id(store))
        if shadow is None and not any(key in self._shadows for key in keys):
            return
        words = []
        for key in keys:
            word = self.of(*key, chosen)
            if not width.words:
                word = word >> np.uint32(16 if width.half == "hi" else 0)
                word = word & np.uint32((1 << 8 * width.size) - 1)
            words.append(word if mask is None else np.where(mask, word, 0))
        values = np.stack(words)
        if store is not waves.scratch:
            moved = [key in self._moved for key in keys]
            bad = not_padding(words, width, moved, self._follows)
            for (bank, index), lanes in zip(keys, bad, strict=True):
                if lanes.any():
                    self._tell(waves, f"stores {bank}{index}", lanes)
                    values = np.zeros_like(values)
        if shadow is None:
            return
        if mask is not None:
            values = values[:, mask]
        if width.words:
            shadow.store_words(offsets, values)
        else:
            shadow.store_narrow(offsets, values[0], width.size)

    def overwrite(self, store: ByteStore, offsets: Addresses, size: int) -> None:
        """Words of memory are defined now."""
        shadow = self._memory.get(id(store))
        if shadow is not None:
            shadow.store_words(offsets, np.zeros((size // 4, *offsets.shape), np.uint32))


def _may_be_zero(words: Array, undefined: Array) -> Array:
    """Whether undefined bits decide if numbers of some words, along the first axis, are 0."""
    return np.asarray(undefined.any(axis=0) & ~(words & ~undefined).any(axis=0))


def unwritten(memory: GlobalMemory, segments: Iterable[Segment]) -> ByteStore:
    """The shadow of global memory in which nobody has written to some segments."""
    shadow = ByteStore(zeros(memory.size_in_bytes))
    for segment in segments:
        first = memory.offset_of(segment)
        shadow.fill(first, first + segment.size, 0xFF)
    return shadow


def _undefined(store: ByteStore) -> ByteStore:
    """The shadow of memory that nobody has written to."""
    shadow = ByteStore(zeros(store.size_in_bytes))
    shadow.fill(0, None, 0xFF)
    return shadow


def _kept(reads: tuple[OperandRead, ...], register: Register) -> int:
    """The bits of a target that an instruction without a flow leaves as they are."""
    for each in reads:
        if each.moved and each.register == register:
            return each.bits
    return 0
