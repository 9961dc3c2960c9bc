"""Operands whose blocks have a scale each, in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

BLOCK = 128
"""Elements along k, and rows of B, that share a scale."""


def random_scales(
    generator: np.random.Generator, elements: npt.NDArray[Any], rows: int = BLOCK
) -> npt.NDArray[np.float32]:
    """Scales about 1, for each block of so many rows."""
    *lead, height, width = elements.shape
    shape = (*lead, -(-height // rows), -(-width // BLOCK))
    return generator.uniform(0.5, 2, shape).astype(np.float32)


def scaled_values(
    elements: npt.NDArray[Any], scales: npt.NDArray[np.float32], rows: int = BLOCK
) -> npt.NDArray[np.float64]:
    """The numbers that elements and the scales of blocks of so many rows are."""
    *_, height, width = elements.shape
    each = scales.astype(np.float64).repeat(rows, -2).repeat(BLOCK, -1)
    return elements.astype(np.float64) * each[..., :height, :width]
