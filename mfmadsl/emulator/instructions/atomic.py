"""Atomic instructions: read, combine, write, lane after lane (CDNA3 ISA, chapters 9 to 11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mfmadsl.emulator.instructions.convert import to_bfloat
from mfmadsl.emulator.machine.bits import Array, Mask
from mfmadsl.emulator.machine.memory import ByteStore
from mfmadsl.emulator.machine.transfer import active
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.machine.width import Width
from mfmadsl.emulator.text.operand import Operand, Register, as_register

Combine = Callable[..., Array]


def _add_bfloat(old: Array, a: Array) -> Array:
    x, y = ((v.astype(np.uint32) << np.uint32(16)).view(np.float32) for v in (old, a))
    return to_bfloat(x + y)


def _exchange(old: Array, expected: Array, new: Array) -> Array:
    return np.where(old == expected, new, old)


ATOMICS: dict[str, Combine] = {
    "add": lambda old, a: old + a,
    "sub": lambda old, a: old - a,
    "rsub": lambda old, a: a - old,
    "min": np.minimum,
    "max": np.maximum,
    "smin": np.minimum,
    "smax": np.maximum,
    "umin": np.minimum,
    "umax": np.maximum,
    "and": lambda old, a: old & a,
    "or": lambda old, a: old | a,
    "xor": lambda old, a: old ^ a,
    "swap": lambda old, a: a,
    "wrxchg": lambda old, a: a,
    "inc": lambda old, a: np.where(old >= a, old.dtype.type(0), old + old.dtype.type(1)),
    "dec": lambda old, a: np.where((old == 0) | (old > a), a, old - old.dtype.type(1)),
    "cmpswap": lambda old, a, expected: _exchange(old, expected, a),
    "cmpst": _exchange,
    "pk_add": lambda old, a: old + a,
    "pk_add_bf16": _add_bfloat,
}
"""What an atomic leaves in memory, of what was there and what the lane brings."""

_DTYPES = {
    "u32": np.uint32,
    "b32": np.uint32,
    "i32": np.int32,
    "f32": np.float32,
    "u64": np.uint64,
    "b64": np.uint64,
    "i64": np.int64,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": np.uint16,
}


def kind_of(name: str, kind: str) -> str:
    """The type that an atomic computes in, of the end of its mnemonic."""
    return kind.replace("u", "i") if name in ("smin", "smax") else kind


def bytes_of(kind: str) -> int:
    """How much memory an atomic of a type changes: narrow ones change pairs."""
    return 8 if kind.endswith("64") else 4


def memory_atomic(name: str, suffix: str | None) -> tuple[Combine, str]:
    """What a global or buffer atomic does, and in which type; the suffix is `_x2`, `_f32`, ..."""
    kind = {None: "u32", "_x2": "u64"}.get(suffix, (suffix or "")[1:])
    return ATOMICS["pk_add_bf16" if kind == "bf16" else name], kind_of(name, kind)


def atomic(
    waves: Waves,
    store: ByteStore,
    offsets: Array,
    combine: Combine,
    kind: str,
    data: Sequence[Operand],
    target: Operand | None,
    mask: Mask | None,
) -> None:
    """The lanes of `mask` in order, so that lanes that meet at an address see each other."""
    dtype = np.dtype(_DTYPES[kind])
    width = Width(bytes_of(kind))
    words = width.words
    sources = []
    for operand in map(as_register, data):
        if waves.watch is not None:
            waves.watch.updates(waves, store, offsets, operand, width, mask)
        parts = [
            active(
                waves.read_vector(Register(operand.bank, operand.index + i, 1), "u32"), waves, mask
            )
            for i in range(operand.count)
        ]
        sources.append(np.stack([np.ascontiguousarray(p).reshape(-1) for p in parts], axis=-1))
    if len(sources) == 1 and sources[0].shape[-1] == 2 * words:  # new value, expected one
        sources = [sources[0][:, :words], sources[0][:, words:]]
    flat = np.ascontiguousarray(offsets).reshape(-1)
    before = np.empty((flat.size, words), dtype=np.uint32)
    values = [np.ascontiguousarray(s).view(dtype) for s in sources]
    for lane in range(flat.size):
        place = flat[lane : lane + 1]
        before[lane] = store.load_words(place, words)[:, 0]
        old = before[lane].view(dtype)
        new = np.asarray(combine(old, *(v[lane] for v in values))).astype(dtype)
        store.store_words(place, np.ascontiguousarray(new).view(np.uint32)[:, None])
    if isinstance(target, Register):
        for i in range(words):
            row = waves.vector if target.bank == "v" else waves.accumulation
            if mask is None:
                row[target.index + i] = before[:, i].reshape(waves.count, -1)
            else:
                row[target.index + i][mask] = before[:, i]
