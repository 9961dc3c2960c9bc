"""GEMM workloads of every layout and type, with random operands and NumPy's idea of the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import te
from tvm.tirx import PrimFunc

from mfmadsl.model.numpy_type import numpy_type

Array = npt.NDArray[Any]

FP8 = {"gfx942": "float8_e4m3fnuz", "gfx950": "float8_e4m3fn"}
BF8 = {"gfx942": "float8_e5m2fnuz", "gfx950": "float8_e5m2"}
SUMS = {"int8": "int32", "float64": "float64"}


@dataclass(frozen=True)
class Workload:
    """C = A x B; a matrix lies by rows if its flag says so, B as N x K if `b_rows` does."""

    m: int
    n: int
    k: int
    a_type: str = "float16"
    b_type: str = "float16"
    a_rows: bool = True
    b_rows: bool = True
    c_rows: bool = True

    @property
    def sum_type(self) -> str:
        return SUMS.get(self.a_type, "float32")

    def function(self, m: Any = None) -> PrimFunc:
        """The PrimFunc; `m` may be a variable instead of a number."""
        m = self.m if m is None else m
        n, k, out = self.n, self.k, self.sum_type
        a = te.placeholder((m, k) if self.a_rows else (k, m), name="A", dtype=self.a_type)
        b = te.placeholder((n, k) if self.b_rows else (k, n), name="B", dtype=self.b_type)
        r = te.reduce_axis((0, k), name="k")

        def element(i: Any, j: Any) -> Any:
            left = a[i, r] if self.a_rows else a[r, i]
            right = b[j, r] if self.b_rows else b[r, j]
            return te.sum(left.astype(out) * right.astype(out), axis=[r])

        if self.c_rows:
            c = te.compute((m, n), element, name="C")
        else:
            c = te.compute((n, m), lambda j, i: element(i, j), name="C")
        return te.create_prim_func([a, b, c])

    def operands(self, seed: int = 0) -> tuple[Array, Array, Array]:
        """A and B as they lie, and a C full of what is no result."""
        generator = np.random.default_rng(seed)
        a = random((self.m, self.k), self.a_type, generator)
        b = random((self.n, self.k), self.b_type, generator)
        c = np.full((self.m, self.n) if self.c_rows else (self.n, self.m), 99, self.sum_type)
        return (
            a if self.a_rows else np.ascontiguousarray(a.T),
            b if self.b_rows else np.ascontiguousarray(b.T),
            c,
        )

    def error(self, a: Array, b: Array, c: Array) -> float:
        """The largest distance from the product in float64, in roundings of the sum."""
        left = (a if self.a_rows else a.T).astype(np.float64)
        right = (b if self.b_rows else b.T).astype(np.float64)
        distance = np.abs((c if self.c_rows else c.T).astype(np.float64) - left @ right.T)
        if c.dtype.kind == "i":
            return float(distance.max())
        rounding = 2.0**-53 if c.dtype == np.float64 else 2.0**-24
        size = (np.abs(left) @ np.abs(right.T)) * rounding * (self.k + 1)
        return float((distance / np.maximum(size, 1e-300)).max())


def random(shape: tuple[int, ...], dtype: str, generator: np.random.Generator) -> Array:
    """Values that every rounding shows in; integers of the whole range."""
    kind = numpy_type(dtype)
    if kind.kind == "i":
        limits = np.iinfo(kind)
        return generator.integers(limits.min, limits.max, shape, kind, endpoint=True)
    # gfx90a takes denormal halves for zero: stay away from them.
    values = generator.standard_normal(shape)
    return np.where(np.abs(values) < 2.0**-10, 1.0, values).astype(kind)


def with_epilogue(
    workload: Workload, stage: Callable[..., Any], extra: dict[str, tuple[tuple[int, ...], str]]
) -> PrimFunc:
    """The workload, by rows, and then `stage(C, *extra)`; `extra` names further arguments."""
    out = workload.sum_type
    a = te.placeholder((workload.m, workload.k), name="A", dtype=workload.a_type)
    b = te.placeholder((workload.n, workload.k), name="B", dtype=workload.b_type)
    more = [te.placeholder(shape, name=name, dtype=dtype) for name, (shape, dtype) in extra.items()]
    r = te.reduce_axis((0, workload.k), name="k")
    c = te.compute(
        (workload.m, workload.n),
        lambda i, j: te.sum(a[i, r].astype(out) * b[j, r].astype(out), axis=[r]),
        name="C",
    )
    return te.create_prim_func([a, b, *more, stage(c, *more)])
