"""Bits of registers as numbers, and back: pure functions of arrays and types.

A type is a letter, b (bits), u, i or f, and a width in bits, such as `f16`. An `x16` is a float of
16 bits of whatever format, as its bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.text.operand import Literal, Register

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Compute = Callable[..., Array]

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
    "x16": np.uint16,
}


def width_of(kind: str) -> int:
    """How many bits a type such as `f16` has."""
    return int(kind[1:])


def dtype_of(kind: str) -> np.dtype[Any]:
    """The NumPy type of a type such as `f16`."""
    return np.dtype(_DTYPES[kind])


def bits_of(file: npt.NDArray[np.uint32], register: Register, kind: str) -> Array:
    """What a register of a file holds, or a pair of them, as unsigned numbers of a type's width."""
    low = file[register.index]
    if width_of(kind) == 16:
        return low.astype(np.uint16)
    if width_of(kind) == 32:
        return low
    return pair_of_words(low, file[register.index + 1])


def typed(bits: Array, kind: str) -> Array:
    """Unsigned numbers as numbers of a type of their width."""
    return bits.view(_DTYPES[kind])


def constant(literal: Literal, kind: str) -> Array:
    """A constant of an instruction as a source of a type."""
    width = width_of(kind)
    bits = literal.bits(width, floating=kind[0] == "f", signed=kind[0] == "i")
    unsigned = _DTYPES[f"u{width}"]
    return np.array(bits, dtype=unsigned).view(_DTYPES[kind])


def modified(value: Array, register: Register) -> Array:
    """A source as its modifiers have it: first its absolute value, then the opposite sign."""
    if value.dtype.kind == "u" and (register.absolute or register.negate):
        sign = value.dtype.type(1 << 8 * value.itemsize - 1)
        value = value & ~sign if register.absolute else value
        return value ^ sign if register.negate else value
    if register.absolute:
        value = np.abs(value)
    return -value if register.negate else value


def words_of(value: Array) -> list[Array]:
    """A result of any type as 32-bit words, low one first; 16-bit results clear the upper half."""
    size = value.dtype.itemsize
    if size == 4:
        return [value.view(np.uint32)]
    if size == 2:
        return [value.view(np.uint16).astype(np.uint32)]
    bits = value.view(np.uint64)
    return [bits.astype(np.uint32), (bits >> np.uint64(32)).astype(np.uint32)]


def pair_of_words(low: Array, high: Array) -> Array:
    """Two words of 32 bits, or floats of so many, as one number of 64."""
    a, b = (v.view(np.uint32).astype(np.uint64) for v in (low, high))
    return a | b << np.uint64(32)


def pair_of_halves(low: Array, high: Array) -> Array:
    """Two numbers of 16 bits, of any type, side by side in one word."""
    a, b = (v.view(np.uint16).astype(np.uint32) for v in (low, high))
    return a | b << np.uint32(16)


def beside(old: Array, half: Array, place: str) -> Array:
    """A number of 16 bits, in a word, in one half of a register whose other half stays.

    `place` is `hi`, or `lo`.
    """
    if place == "hi":
        return old & np.uint32(0xFFFF) | half << np.uint32(16)
    return old & np.uint32(0xFFFF_0000) | half & np.uint32(0xFFFF)


def sign_extended(words: Array, width: int) -> Array:
    """The lowest bits of words, so many, with copies of the topmost of them above."""
    sign = np.uint32(1 << (width - 1))
    return (words ^ sign) - sign


def codes_of(words: Array, bits: int) -> Array:
    """What words hold along the last axis, which is contiguous, as codes of up to 16 bits."""
    if bits in (8, 16):
        return words.view(np.uint8 if bits == 8 else np.uint16)
    unpacked = np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little")
    groups = unpacked.reshape(*words.shape[:-1], -1, bits)
    return groups @ (1 << np.arange(bits)).astype(np.uint8)


def words_of_codes(codes: Array, bits: int) -> Array:
    """Codes of up to 16 bits along the last axis, side by side in words."""
    if bits in (8, 16):
        return np.ascontiguousarray(codes).view(np.uint32)
    spread = (codes[..., None] >> np.arange(bits) & 1).astype(np.uint8)
    flat = spread.reshape(*codes.shape[:-1], -1)
    return np.packbits(flat, axis=-1, bitorder="little").view(np.uint32)
