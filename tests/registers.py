"""Matrices into the registers of 64 lanes and back, by an operand's layout."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from mfmadsl.model import ElementType, Intrinsic, Operand
from mfmadsl.model.numpy_type import numpy_type

Array = npt.NDArray[Any]


def dtype_of(element: ElementType) -> np.dtype[Any]:
    """NumPy's dtype of the numbers."""
    return numpy_type(element.dtype)


def codes(values: Array, element: ElementType) -> Array:
    """The bits of each number, as unsigned integers."""
    typed = values.astype(dtype_of(element))
    return np.asarray(typed.view(f"u{typed.itemsize}"), dtype=np.uint64)


def pack(operand: Operand, bits: Array) -> npt.NDArray[np.uint32]:
    """Codes of shape (blocks, rows, stored columns) as words of shape (64, registers)."""
    lanes = [0] * 64
    width = operand.type.bits
    for (block, row, column), code in np.ndenumerate(bits):
        lane, element = operand.layout.slot(row, column, block)
        lanes[lane] |= int(code) << element * width
    count = operand.register_count
    octets = b"".join(value.to_bytes(4 * count, "little") for value in lanes)
    return np.frombuffer(octets, np.uint32).reshape(64, count).copy()


def unpack(operand: Operand, words: npt.NDArray[np.uint32]) -> Array:
    """The numbers of shape (blocks, rows, columns) in words of shape (64, registers)."""
    layout = operand.layout
    held = words.view(dtype_of(operand.type))
    result = np.zeros((layout.blocks, layout.rows, layout.columns), held.dtype)
    for block, row, column in np.ndindex(*result.shape):
        result[block, row, column] = held[layout.slot(row, column, block)]
    return result


def random_values(intrinsic: Intrinsic, operand: Operand, generator: np.random.Generator) -> Array:
    """Numbers that the operand's type holds, as float64, of shape (blocks, rows, columns)."""
    layout = operand.layout
    shape = layout.blocks, layout.rows, layout.columns
    if operand.type.kind == "integer":
        bound = 1 << (min(operand.type.bits, 12) - 1)
        return generator.integers(-bound, bound, shape).astype(np.float64)
    values = generator.standard_normal(shape) * 2
    if operand.type.name == "xfloat32":
        values = values.astype(ml_dtypes.bfloat16)  # what xf32 holds without rounding
    return np.asarray(values.astype(dtype_of(operand.type)).astype(np.float64))
