"""Whether a step computes a product: its machine code runs in the emulator, beside NumPy."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from tvm.s_tir import Schedule

import mfmadsl
from examples.gpu_gemm.step import Size

Array: TypeAlias = npt.NDArray[Any]


def matrices(size: Size, dtype: str = "float32") -> tuple[Array, Array, Array]:
    """A and B of integers from -8 to 8, no row or column like another, and a C of NaN.

    All sums are whole numbers below 2^24, if K is no more than 2^18: they are exact in float32, in
    whatever order they are added up. So a right result is equal to NumPy's, bit by bit.
    """
    generator = np.random.default_rng(2048)
    a = generator.integers(-8, 9, (size.m, size.k)).astype(dtype)
    b = generator.integers(-8, 9, (size.k, size.n)).astype(dtype)
    return a, b, np.full((size.m, size.n), np.nan, "float32")


def difference(a: Array, b: Array, c: Array) -> str | None:
    """Where C is not A x B, as a sentence; None if it is."""
    product = a.astype(np.float64) @ b.astype(np.float64)
    wrong = np.argwhere(~(c == product))
    if not len(wrong):
        return None
    row, column = wrong[0]
    return (
        f"{len(wrong)} of {c.size} elements are wrong, the first of them "
        f"C[{row}, {column}] = {c[row, column]:g}, not {product[row, column]:g}"
    )


def check(sch: Schedule, size: Size, arch: str, dtype: str = "float32") -> str | None:
    """Run a schedule's machine code in the emulator: what is wrong, or None.

    Raises what `mfmadsl.build` and `mfmadsl.emulate` raise.
    """
    a, b, c = matrices(size, dtype)
    mfmadsl.emulate(mfmadsl.build(sch, arch), [a, b, c])
    return difference(a, b, c)
