"""Rows that are sorted by expert, each of which has a matrix B of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_EXPERTS = 1 << 16
"""Of which the ends of all are written out, where a kernel is described."""

Ends = npt.NDArray[np.int32]
Matrix = npt.NDArray[np.float64]


def even_ends(rows: int, experts: int) -> Ends:
    """The ends of experts that have as many rows each, as far as there are."""
    return (np.arange(1, experts + 1) * rows // experts).astype(np.int32)


def random_ends(generator: np.random.Generator, rows: int, experts: int) -> Ends:
    """The ends of experts of any numbers of rows, also of none."""
    ends = np.sort(generator.integers(0, rows, experts, np.int32, endpoint=True))
    ends[-1] = rows
    return ends


def of_experts(left: Matrix, right: Matrix, ends: Ends) -> Matrix:
    """Each row times the matrix of its expert; the last one has all rows that are left."""
    parts = np.split(left, ends[:-1])
    return np.concatenate([rows @ own for rows, own in zip(parts, right, strict=True)])


def stacked(each: Sequence[Sequence[npt.NDArray[Any]]]) -> list[npt.NDArray[Any]]:
    """The arrays of all experts, with the expert before their other axes, of those of each."""
    return [np.stack(own) for own in zip(*each, strict=True)]
