"""A product of matrices as the ladders have it: its size, exact inputs, and where it is wrong."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
_SIZE = re.compile(r"(\d{1,6})x(\d{1,6})x(\d{1,6})")


@dataclass(frozen=True)
class Size:
    """C[m, n] = A[m, k] x B[k, n]; m, n and k are numbers of elements."""

    m: int
    n: int
    k: int

    @property
    def multiply_adds(self) -> int:
        return self.m * self.n * self.k

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"


def parsed_size(text: str, example: Size) -> Size:
    """M x N x K of an option. Raises ArgumentTypeError for any other text."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ArgumentTypeError(f"`{text}` is no size such as {example}")
    return Size(*map(int, found.groups()))


def matrices(
    size: Size, dtype: str = "float32", b_by_columns: bool = False
) -> tuple[Array, Array, Array]:
    """A and B of integers from -8 to 8, no row or column like another, and a C of NaN.

    B lies as N x K if it is by columns. All sums are whole numbers below 2^24, if K is no more than
    2^18: they are exact in float32, in whatever order they are added up. So a right result is
    equal to NumPy's, bit by bit.
    """
    generator = np.random.default_rng(2048)
    a = generator.integers(-8, 9, (size.m, size.k)).astype(dtype)
    b = generator.integers(-8, 9, (size.k, size.n)).astype(dtype)
    if b_by_columns:
        b = np.ascontiguousarray(b.T)
    return a, b, np.full((size.m, size.n), np.nan, "float32")


def difference(a: Array, b: Array, c: Array) -> str | None:
    """Where C is not A x B, with B as K x N, as a sentence; None if it is."""
    product = a.astype(np.float64) @ b.astype(np.float64)
    wrong = np.argwhere(~(c == product))
    if not len(wrong):
        return None
    row, column = wrong[0]
    return (
        f"{len(wrong)} of {c.size} elements are wrong, the first of them "
        f"C[{row}, {column}] = {c[row, column]:g}, not {product[row, column]:g}"
    )
