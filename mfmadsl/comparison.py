"""A result beside what it should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Comparison:
    """How far a result is from the product in float64; `tolerance` belongs to the worst element.

    The tolerance is what the chip's matrix cores may round away, of sum(|A[i]| * |B[j]|). Integers
    have none. `batch` is None where there is none. Of `approximate` and `trusted` instructions see
    `Run`.
    """

    error: float
    tolerance: float
    row: int
    column: int
    batch: int | None = None
    approximate: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether the worst element is within its tolerance."""
        return self.error <= self.tolerance

    @property
    def place(self) -> str:
        """Where the element is, as an index of C."""
        batch = "" if self.batch is None else f"{self.batch}, "
        return f"[{batch}{self.row}, {self.column}]"


def compared(
    found: npt.NDArray[Any],
    expected: npt.NDArray[np.float64],
    tolerances: npt.NDArray[np.float64],
) -> Comparison:
    """Where a result is furthest beyond its tolerance or, if nowhere, has the largest error.

    All are of one shape: (rows, columns), or (batch, rows, columns).
    """
    with np.errstate(all="ignore"):  # infinities and NaN, which are right where they are expected
        wide, rounded = found.astype(np.float64), expected.astype(found.dtype).astype(np.float64)
        errors = np.abs(wide - expected)
        as_expected = (wide == rounded) | (np.isnan(wide) & np.isnan(rounded))
    errors[~np.isfinite(errors)] = np.inf
    errors[np.isinf(errors) & as_expected] = 0
    place = np.unravel_index(np.argmax(errors - tolerances), errors.shape)
    if not errors[place] > tolerances[place]:
        place = np.unravel_index(np.argmax(errors), errors.shape)
    *batch, row, column = map(int, place)
    return Comparison(
        float(errors[place]), float(tolerances[place]), row, column, batch[0] if batch else None
    )
