"""The chain E = exp(A x B), F = E x C in float32: its size, its loops, inputs, and NumPy's way."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from tvm import te
from tvm.s_tir import Schedule

Floats: TypeAlias = npt.NDArray[np.float32]
Inputs: TypeAlias = tuple[Floats, Floats, Floats]

_SIZE = re.compile(r"(\d{1,7})x(\d{1,7})x(\d{1,7})x(\d{1,7})")
_MOST_ELEMENTS = 2**26
_MOST_MULTIPLY_ADDS = 2**36
_LARGEST = 8


@dataclass(frozen=True)
class Size:
    """A is M x K, B is K x N, C is N x P; numbers of elements."""

    m: int
    k: int
    n: int
    p: int

    @property
    def multiply_adds(self) -> int:
        """Those of both products."""
        return self.m * self.n * (self.k + self.p)

    @property
    def gigaflops(self) -> float:
        """10^9 additions and multiplications of both products; exp is not counted."""
        return 2 * self.multiply_adds / 1e9

    def __str__(self) -> str:
        return f"{self.m}x{self.k}x{self.n}x{self.p}"


FULL = Size(1024, 2048, 1024, 3072)
"""That of the texts by which people learn this."""


def parsed_size(text: str) -> Size:
    """M x K x N x P of an option. Raises ArgumentTypeError for another text, a size of 0, and what
    would take too much memory or time."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ArgumentTypeError(f"`{text}` is no size MxKxNxP such as {FULL}")
    size = Size(*map(int, found.groups()))
    if not size.m * size.k * size.n * size.p:
        raise ArgumentTypeError(f"{text}: each of M, K, N and P is at least 1")
    matrices = (size.m * size.k, size.k * size.n, size.m * size.n, size.n * size.p, size.m * size.p)
    if max(matrices) > _MOST_ELEMENTS:
        raise ArgumentTypeError(f"{text}: a matrix has more than {_MOST_ELEMENTS} elements")
    if size.multiply_adds > _MOST_MULTIPLY_ADDS:
        raise ArgumentTypeError(f"{text}: more than {_MOST_MULTIPLY_ADDS} multiply-adds")
    return size


def loops(size: Size) -> Schedule:
    """Three nests of loops, as one writes them down: blocks P = A x B, E = exp(P), F = E x C.

    The function takes A, B, C and F; P and E are its own.
    """
    a = te.placeholder((size.m, size.k), name="A")
    b = te.placeholder((size.k, size.n), name="B")
    c = te.placeholder((size.n, size.p), name="C")
    k = te.reduce_axis((0, size.k), name="k")
    j = te.reduce_axis((0, size.n), name="j")
    p = te.compute((size.m, size.n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=[k]), name="P")
    e = te.compute((size.m, size.n), lambda i, j: te.exp(p[i, j]), name="E")
    f = te.compute((size.m, size.p), lambda i, q: te.sum(e[i, j] * c[j, q], axis=[j]), name="F")
    return Schedule(te.create_prim_func([a, b, c, f]))


def inputs(size: Size) -> Inputs:
    """A, B and C, of which no row or column is like another.

    A and B are whole numbers from -8 to 8, times a power of two that makes a sum of A x B about 1
    (its standard deviation is between 1/2 and 1): exp stays finite, and every sum is exact in
    float32, in whatever order it is added up, as long as K is below 2^18. So the check has no
    rounding of the first product to allow for. C is from 0 to 1, so that an error common to all of
    E is not lost among terms of both signs.
    """
    generator = np.random.default_rng(2048)
    deviation = 24 * np.sqrt(size.k)  # whole numbers from -8 to 8 have a variance of 24
    halvings = int(np.ceil(np.log2(deviation)))
    a = generator.integers(-_LARGEST, _LARGEST + 1, (size.m, size.k)).astype(np.float32)
    b = generator.integers(-_LARGEST, _LARGEST + 1, (size.k, size.n)).astype(np.float32)
    c = generator.random((size.n, size.p), dtype=np.float32)
    return a * np.float32(2.0**-halvings), b, c


def with_numpy(given: Inputs, e: Floats, f: Floats) -> None:
    """The chain as NumPy has it, into matrices that are there: two calls of BLAS, one of exp."""
    a, b, c = given
    np.matmul(a, b, out=e)
    np.exp(e, out=e)
    np.matmul(e, c, out=f)
