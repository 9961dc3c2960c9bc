"""Operands in MX formats: small floats packed along k, with a power of two for each group."""

from __future__ import annotations

from typing import Any

import ml_dtypes  # what is known of types that NumPy lacks
import numpy as np
import numpy.typing as npt

from mfmadsl.model import ELEMENT_TYPES
from mfmadsl.model.numpy_type import numpy_type

GROUP = 32
"""Elements along k that share a scale (OCP Microscaling Formats v1.0, 5.2)."""

_ONE = 127  # the scale that is 1 (5.4.1)


def packed(elements: npt.NDArray[Any], bits: int) -> npt.NDArray[np.uint8]:
    """Rows of elements of so many bits, next to each other from the lowest bit of a byte up."""
    codes = elements.view(np.uint8)
    each = codes[..., None] >> np.arange(bits, dtype=np.uint8) & 1
    return np.packbits(each.reshape(*codes.shape[:-1], -1), axis=-1, bitorder="little")


def scaled_values(
    octets: npt.NDArray[np.uint8], scales: npt.NDArray[np.uint8], dtype: str
) -> npt.NDArray[np.float64]:
    """The numbers that rows of packed elements and their scales are."""
    bits = ELEMENT_TYPES[dtype].bits
    each = np.unpackbits(octets, axis=-1, bitorder="little")
    each = each.reshape(*octets.shape[:-1], -1, bits)
    codes = np.packbits(each, axis=-1, bitorder="little")[..., 0]
    powers = 2.0 ** (scales.astype(np.float64) - _ONE)
    return codes.view(numpy_type(dtype)).astype(np.float64) * np.repeat(powers, GROUP, axis=-1)


def random_scales(
    generator: np.random.Generator, rows: tuple[int, ...], k: int
) -> npt.NDArray[np.uint8]:
    """Scales about 1, of rows or of batches of them."""
    return generator.integers(_ONE - 4, _ONE + 5, (*rows, k // GROUP), np.uint8)


def quantisation_error(
    values: npt.NDArray[np.float64], tolerances: npt.NDArray[np.float64], dtype: str
) -> npt.NDArray[np.float64]:
    """How far elements in an MX format may be from values that are known up to tolerances.

    The largest power of two of a group becomes the type's (OCP Microscaling Formats v1.0, 6.3), so
    that larger numbers may be beyond the type's largest one.
    """
    most = np.abs(values) + tolerances
    groups = most.reshape(*values.shape[:-1], -1, GROUP).max(axis=-1)
    number = ml_dtypes.finfo(numpy_type(dtype))
    largest, least = float(number.max), float(number.smallest_subnormal)
    power = np.floor(np.log2(np.maximum(groups, np.finfo(np.float32).tiny)))
    scale = np.repeat(2.0 ** (power - np.floor(np.log2(largest))), GROUP, axis=-1)
    rounded = np.maximum(most * 2.0 ** -(number.nmant + 1), scale * least / 2)
    return np.asarray(np.maximum(rounded, most - scale * largest))
