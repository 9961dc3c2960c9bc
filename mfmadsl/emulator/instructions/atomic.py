"""Atomic instructions: read, combine, write, lane after lane (CDNA3 ISA, chapters 9 to 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mfmadsl.emulator.instructions.number import from_bfloat, to_bfloat
from mfmadsl.emulator.machine.bits import Array, Compute, Mask, dtype_of
from mfmadsl.emulator.machine.memory import ByteStore
from mfmadsl.emulator.machine.transfer import active
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.machine.width import Width
from mfmadsl.emulator.text.operand import Register


def _add_bfloat(old: Array, a: Array) -> Array:
    return to_bfloat(from_bfloat(old) + from_bfloat(a))


def _exchange(old: Array, expected: Array, new: Array) -> Array:
    return np.where(old == expected, new, old)


def _exchange_marked(old: Array, new: Array) -> Array:
    """Each word of two is replaced by one whose highest bit is set, without that."""
    found = old
    for shift in (0, 32):
        mark, word = np.uint64(1 << shift + 31), np.uint64(0xFFFF_FFFF << shift)
        found = np.where(new & mark != 0, found & ~word | new & word & ~mark, found)
    return found


@dataclass(frozen=True)
class Atomic:
    """What an atomic leaves in memory, of what was there and of `values` numbers of a lane.

    With `signed`, what is written as unsigned counts as signed; without `on_floats` there is none
    of floats.
    """

    combine: Compute
    values: int = 1
    signed: bool = False
    on_floats: bool = True


ATOMICS: dict[str, Atomic] = {
    "add": Atomic(lambda old, a: old + a),
    "sub": Atomic(lambda old, a: old - a),
    "rsub": Atomic(lambda old, a: a - old),
    "min": Atomic(np.minimum),
    "max": Atomic(np.maximum),
    "smin": Atomic(np.minimum, signed=True),
    "smax": Atomic(np.maximum, signed=True),
    "umin": Atomic(np.minimum),
    "umax": Atomic(np.maximum),
    "and": Atomic(lambda old, a: old & a, on_floats=False),
    "or": Atomic(lambda old, a: old | a, on_floats=False),
    "xor": Atomic(lambda old, a: old ^ a, on_floats=False),
    "swap": Atomic(lambda old, a: a),
    "wrxchg": Atomic(lambda old, a: a),
    "inc": Atomic(lambda old, a: np.where(old >= a, old.dtype.type(0), old + old.dtype.type(1))),
    "dec": Atomic(lambda old, a: np.where((old == 0) | (old > a), a, old - old.dtype.type(1))),
    "cmpswap": Atomic(lambda old, a, expected: _exchange(old, expected, a), values=2),
    "cmpst": Atomic(_exchange, values=2),
    "mskor": Atomic(lambda old, a, b: old & ~a | b, values=2, on_floats=False),
    "wrap": Atomic(lambda old, a, b: np.where(old >= a, old - a, old + b), 2, on_floats=False),
    "condxchg32": Atomic(_exchange_marked, on_floats=False),
    "pk_add": Atomic(lambda old, a: old + a),
    "pk_add_bf16": Atomic(_add_bfloat),
}

_PACKED = ("f16", "bf16")
_ONLY = {"wrap": "b32", "condxchg32": "b64"}


@dataclass(frozen=True)
class Update:
    """An atomic of a type, which changes `size` bytes of memory: narrow types come in pairs."""

    atomic: Atomic
    dtype: np.dtype[Any]
    size: int

    @property
    def words(self) -> int:
        """Its operand's size in 32-bit words."""
        return self.size // 4


def find_update(name: str, kind: str) -> Update | None:
    """An atomic by the name and the type in its mnemonic; None if there is no such one."""
    if name not in ATOMICS or (name == "pk_add") != (kind in _PACKED):
        return None
    if name in _ONLY and _ONLY[name] != kind:
        return None
    atomic = ATOMICS["pk_add_bf16" if kind == "bf16" else name]
    if kind[0] == "f" and not atomic.on_floats:
        return None
    held = "u16" if kind == "bf16" else kind.replace("u", "i") if atomic.signed else kind
    return Update(atomic, dtype_of(held), 8 if kind.endswith("64") else 4)


def find_memory_update(name: str, suffix: str | None) -> Update | None:
    """A global or buffer atomic, whose suffix is `_x2`, `_f32`, ...; None if there is none."""
    kind = {None: "u32", "_x2": "u64"}.get(suffix, (suffix or "")[1:])
    return find_update(name, kind)


def update_memory(
    waves: Waves,
    store: ByteStore,
    offsets: Array,
    update: Update,
    data: Sequence[Register],
    target: Register | None,
    mask: Mask | None,
) -> None:
    """The lanes of `mask` in order, so that lanes that meet at an address see each other.

    `data` are the registers of the values, or those of both one after the other.
    """
    width, words, dtype = Width(update.size), update.words, update.dtype
    sources = []
    for operand in data:
        if waves.watch is not None:
            waves.watch.updates(waves, store, offsets, operand, width, mask)
        parts = [
            active(
                waves.read_vector(Register(operand.bank, operand.index + i, 1), "u32"), waves, mask
            )
            for i in range(operand.count)
        ]
        sources.append(np.stack([np.ascontiguousarray(p).reshape(-1) for p in parts], axis=-1))
    if len(sources) < update.atomic.values:
        sources = [sources[0][:, :words], sources[0][:, words:]]
    flat = np.ascontiguousarray(offsets).reshape(-1)
    before = np.empty((flat.size, words), dtype=np.uint32)
    values = [np.ascontiguousarray(s).view(dtype) for s in sources]
    for lane in range(flat.size):
        place = flat[lane : lane + 1]
        before[lane] = store.load_words(place, words)[:, 0]
        old = before[lane].view(dtype)
        new = np.asarray(update.atomic.combine(old, *(v[lane] for v in values))).astype(dtype)
        store.store_words(place, np.ascontiguousarray(new).view(np.uint32)[:, None])
    if target is not None:
        for i in range(words):
            row = waves.vector if target.bank == "v" else waves.accumulation
            if mask is None:
                row[target.index + i] = before[:, i].reshape(waves.count, -1)
            else:
                row[target.index + i][mask] = before[:, i]
