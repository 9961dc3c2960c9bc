"""A sparse operand: two of each four elements along k, and the index that tells which."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mfmadsl.sparsity import GROUP, KEPT, Compressed


def stored(
    generator: np.random.Generator, matrix: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """Of rows along k what is stored, two of four at random places, and the bytes of the index."""
    *lead, k = matrix.shape
    order = np.argsort(generator.random((*lead, k // GROUP, GROUP)), axis=-1)
    places = np.sort(order[..., :KEPT], axis=-1)
    values = np.take_along_axis(matrix.reshape(*lead, k // GROUP, GROUP), places, axis=-1)
    flat = (*lead, k // GROUP * KEPT)
    return values.reshape(flat), Compressed(values, places.astype(np.uint8).reshape(flat)).packed
