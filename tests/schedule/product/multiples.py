"""Products whose extents are expressions, and their kernels under the sanitizer."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from tvm import te
from tvm.tirx import Expr, PrimFunc

import mfmadsl
from mfmadsl.backend import Kernel


def product(
    m: Any, n: Any, k: Any, bias: Any = None, row: Callable[[Expr], Expr] | None = None
) -> PrimFunc:
    """C[m, n], or with `bias`, its rows, also the rows that `row` takes of those."""
    a = te.placeholder((m, k), name="A", dtype="float16")
    b = te.placeholder((n, k), name="B", dtype="float16")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(a[i, r].astype("float32") * b[j, r].astype("float32"), axis=[r]),
        name="C",
    )
    if bias is None or row is None:
        return te.create_prim_func([a, b, c])
    added = te.placeholder((bias, n), name="bias", dtype="float32")
    d = te.compute((m, n), lambda i, j: c[i, j] + added[row(i), j], name="D")
    return te.create_prim_func([a, b, added, d])


@cache
def built(function: PrimFunc) -> Kernel:
    """One kernel for all extents: those that are for some are `test_cases`'."""
    tiling = mfmadsl.gemm_tiling(function, arch="gfx942")
    return mfmadsl.build(mfmadsl.gemm_schedule(function, arch="gfx942", tiling=tiling), "gfx942")


def run(
    function: PrimFunc, m: int, n: int, k: int, bias: int | None = None,
    kernel: Kernel | None = None,
) -> Any:  # fmt: skip
    """(what a kernel of it gives, A x B^T, the bias), under the sanitizer."""
    kernel = kernel or built(function)
    generator = np.random.default_rng(m + n + k)
    a, b = (generator.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (n, k)))
    added = [] if bias is None else [generator.integers(-9, 9, (bias, n)).astype(np.float32)]
    c = np.zeros((m, n), np.float32)
    mfmadsl.sanitize(kernel, [a, b, *added, c])
    return c, a.astype(np.float64) @ b.astype(np.float64).T, *added
