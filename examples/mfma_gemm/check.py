"""Whether a step computes a product: its machine code runs under the sanitizer, beside NumPy."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import mfmadsl
from examples.mfma_gemm.step import Size, Step
from mfmadsl import EmulationError, Kernel

Array: TypeAlias = npt.NDArray[Any]

SMALL = Size(270, 328, 200)
"""Where every step is run: several tiles along M and N, and edges of all three extents."""


def matrices(size: Size, b_by_columns: bool) -> tuple[Array, Array, Array]:
    """A and B of integers from -8 to 8, no row or column like another, and a C of NaN.

    B lies as N x K if it is by columns. All sums are whole numbers below 2^24, if K is no more than
    2^18: they are exact in float32, in whatever order they are added up. So a right result is
    equal to NumPy's, bit by bit.
    """
    generator = np.random.default_rng(2048)
    a = generator.integers(-8, 9, (size.m, size.k)).astype("float16")
    b = generator.integers(-8, 9, (size.k, size.n)).astype("float16")
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


def check(step: Step, size: Size = SMALL) -> str | None:
    """What is wrong with a step's machine code at that size, or None. Raises what `build` does."""
    return wrong_with(step.kernel(size), size, step.b_by_columns)


def wrong_with(kernel: Kernel, size: Size, b_by_columns: bool) -> str | None:
    """What the sanitizer finds in a kernel, or else where its product is not NumPy's.

    The sanitizer runs it as the emulator does, and finds what a chip would not define: two waves
    that meet in the LDS with no barrier between, a register that is used before its load is there.
    """
    a, b, c = matrices(size, b_by_columns)
    try:
        mfmadsl.sanitize(kernel, [a, b, c])
    except EmulationError as fault:
        return f"the sanitizer finds: {fault}"
    return difference(a, b.T if b_by_columns else b, c)
