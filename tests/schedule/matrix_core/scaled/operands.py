"""Scaled operands for tests: their bits, and what they are by OCP's text in float64."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

GROUP = 32
"""Elements along k that share a scale (OCP Microscaling Formats v1.0, 5.2)."""

BITS = {
    "float8_e4m3fn": 8, "float8_e5m2": 8, "float6_e2m3fn": 6, "float6_e3m2fn": 6,
    "float4_e2m1fn": 4,
}  # fmt: skip
"""The types of elements, and the bits of each (OCP Microscaling Formats v1.0, 5.3)."""


@dataclass(frozen=True)
class Scaled:
    """A matrix of rows along k: its packed elements, its scales, and its values."""

    packed: NDArray[np.uint8]
    scales: NDArray[np.uint8]
    values: NDArray[np.float64]


def scaled(rng: np.random.Generator, rows: int, k: int, dtype: str) -> Scaled:
    """Random finite elements of all codes, with scales around one."""
    bits, element = BITS[dtype], np.dtype(getattr(ml_dtypes, dtype))
    every = np.arange(1 << bits, dtype=np.uint8)
    finite = every[np.isfinite(every.view(element).astype(np.float64))]
    codes = rng.choice(finite, (rows, k))
    scales = rng.integers(118, 137, (rows, k // GROUP)).astype(np.uint8)
    powers = 2.0 ** (scales.astype(np.float64) - 127)
    values = codes.view(element).astype(np.float64) * np.repeat(powers, GROUP, axis=1)
    return Scaled(packed(codes, bits), scales, values)


def packed(codes: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Codes next to each other in bytes, the first in the lowest bits."""
    each = codes[..., None] >> np.arange(bits, dtype=np.uint8) & 1
    return np.packbits(each.reshape(len(codes), -1), axis=1, bitorder="little")


def values_of(
    octets: NDArray[np.uint8], scales: NDArray[np.uint8], dtype: str
) -> NDArray[np.float64]:
    """What packed rows are: each row a number, of which an element is some bits."""
    bits, element = BITS[dtype], np.dtype(getattr(ml_dtypes, dtype))
    rows = [int.from_bytes(row.tobytes(), "little") for row in octets]
    count, mask = octets.shape[1] * 8 // bits, (1 << bits) - 1
    codes = np.array([[row >> bits * k & mask for k in range(count)] for row in rows], np.uint8)
    exponents = np.repeat(scales.astype(int) - 127, GROUP, axis=1)
    values: NDArray[np.float64] = np.ldexp(codes.view(element).astype(np.float64), exponents)
    return values


def by_words(scales: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The four scales of 128 k of all rows together."""
    return np.ascontiguousarray(scales.reshape(len(scales), -1, 4).transpose(1, 0, 2))


def shuffled(scales: NDArray[np.uint8], fill: int = 255) -> NDArray[np.uint8]:
    """Scales as AITER's `e8m0_shuffle` leaves them, but that tiles are filled up with NaN."""
    rows, columns = (-(-extent // each) for extent, each in zip(scales.shape, (32, 8), strict=True))
    whole = np.full((rows * 32, columns * 8), fill, np.uint8)
    whole[: scales.shape[0], : scales.shape[1]] = scales
    tiles = whole.reshape(rows, 2, 16, columns, 2, 4)
    return np.ascontiguousarray(tiles.transpose(0, 3, 5, 2, 4, 1))
