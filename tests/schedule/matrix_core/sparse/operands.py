"""Sparse operands for tests: stored elements at random places, and the matrix that they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

PAIRS = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], np.uint8)
"""The places of two elements among four."""


@dataclass(frozen=True)
class Sparse:
    """What is stored of a matrix, its index as bytes, and all of it in float64."""

    stored: NDArray[Any]
    index: NDArray[np.uint8]
    values: NDArray[np.float64]


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Random elements of a type: all integers, or floats about zero."""
    if dtype == "int8":
        return rng.integers(-128, 128, shape).astype(np.int8)
    found = np.dtype(dtype) if dtype == "float16" else np.dtype(getattr(ml_dtypes, dtype))
    return rng.standard_normal(shape).astype(found)


def sparse(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Sparse:
    """A random matrix [..., rows, k], of which two of each four along k are stored.

    The places of two elements are two bits each, from the lowest bit of a byte up (CDNA3 ISA,
    7.4.2): `index` is [..., rows, k / 8].
    """
    *lead, k = shape
    places = PAIRS[rng.integers(0, len(PAIRS), (*lead, k // 4))]
    stored = numbers(rng, (*lead, k // 2), dtype)
    groups = np.zeros((*lead, k // 4, 4))
    own = stored.astype(np.float64).reshape(places.shape)
    np.put_along_axis(groups, places.astype(np.intp), own, axis=-1)
    halves = places[..., 0] | places[..., 1] << 2
    index = (halves[..., ::2] | halves[..., 1::2] << 4).astype(np.uint8)
    return Sparse(stored, index, groups.reshape(shape))
