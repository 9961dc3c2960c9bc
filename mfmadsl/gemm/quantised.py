"""Weights of few bits: random ones as a format stores them, and the numbers that they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mfmadsl.model.numpy_type import numpy_type
from mfmadsl.schedule.workload.quantised import NIBBLES, WeightFormat

Array = npt.NDArray[Any]

_AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # of the rows in a word, from its lowest nibble up
_MAGNITUDES = (0, 0.5, 1, 1.5, 2, 3, 4, 6)  # of float4_e2m1fn, by the lowest three bits
_E8M0_BIAS = 127


def random_weights(
    generator: np.random.Generator, stored: WeightFormat, n: int, k: int, group: int, dtype: str
) -> list[Array]:
    """What a format stores of random weights, scales about 2^-5."""
    words, groups = 1 << 32, k // group
    scales = generator.uniform(0.02, 0.05, (groups, n)).astype(numpy_type(dtype))
    if stored.name == "int8":
        return [generator.integers(-128, 128, (n, k), np.int8), scales[0]]
    if stored.name == "mxfp4":
        exponents = generator.integers(_E8M0_BIAS - 8, _E8M0_BIAS, (n, groups), np.uint8)
        return [generator.integers(0, 256, (n, k // 2), np.uint8), exponents]
    if stored.name == "q4f16":
        q = generator.integers(0, words, (n, k // NIBBLES), np.uint32)
        return [q, np.ascontiguousarray(scales.T)]
    shape = (k // NIBBLES, n) if stored.name == "gptq" else (k, n // NIBBLES)
    shapes = shape, (groups, n // NIBBLES)
    q, zeros = (generator.integers(0, words, each, np.uint32).view(np.int32) for each in shapes)
    return [q, zeros, scales]


def weights_of(stored: WeightFormat, arrays: list[Array], group: int, dtype: str) -> Array:
    """The weights [n, k] that these arrays are, of type `dtype`."""
    kind, scales = numpy_type(dtype), arrays[-1]
    if stored.name == "int8":
        weights: Array = arrays[0].astype(kind) * scales[:, None]
        return weights
    if stored.name == "mxfp4":
        signed = np.array([*_MAGNITUDES, *(-each for each in _MAGNITUDES)], kind)
        elements = np.stack([arrays[0] & 15, arrays[0] >> 4], axis=-1).reshape(len(scales), -1)
        powers = np.exp2(scales.astype(np.float32) - _E8M0_BIAS).astype(kind)
        return np.asarray(signed[elements] * powers.repeat(group, axis=1))
    if stored.name == "q4f16":
        numbers = _nibbles(arrays[0]).reshape(len(scales), -1).astype(kind) - kind.type(7)
        return np.asarray(numbers * scales.repeat(group, axis=1))
    q, zeros, _ = arrays
    if stored.name == "gptq":
        numbers, zero = _nibbles(q).swapaxes(1, 2).reshape(-1, q.shape[1]), _rows(zeros) + 1
    else:
        numbers, zero = (_rows(each, _AWQ_ORDER) for each in (q, zeros))
    both = (numbers.astype(kind), zero.astype(kind).repeat(group, axis=0))
    return np.asarray((both[0] - both[1]) * scales.repeat(group, axis=0)).T


def _nibbles(words: Array) -> Array:
    """The eight fields of four bits of each word, the lowest first, along a new last axis."""
    downs = np.arange(0, 32, 4, dtype=np.uint32)
    return np.asarray(words.view(np.uint32)[..., None] >> downs & 15)


def _rows(words: Array, order: tuple[int, ...] = tuple(range(NIBBLES))) -> Array:
    """The numbers of words in which eight neighbours along the last axis lie in an order."""
    fields, found = _nibbles(words), np.empty((*words.shape, NIBBLES), np.uint32)
    found[..., list(order)] = fields
    return found.reshape(*words.shape[:-1], -1)
