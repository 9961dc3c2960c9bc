"""Products of every layout and type, and what a kernel of this machine makes of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tvm import te
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.host.cpu import host_cpu
from mfmadsl.language import microkernels
from mfmadsl.model import Cpu, Microkernel
from mfmadsl.model.cpu import cpu as cpu_named
from mfmadsl.model.numpy_type import numpy_type

Array = npt.NDArray[Any]
SUMS = {"float32": "float32", "float64": "float64", "uint8": "int32", "int8": "int32"}
OTHER = {"float32": "float32", "float64": "float64", "uint8": "int8", "int8": "uint8"}

HASWELL, SSE2 = cpu_named("haswell"), cpu_named("x86-64")
RUN_HERE = [each.name for each in microkernels().values() if not host_cpu().missing(each.features)]
"""The micro-kernels of the library that this CPU has the instructions of."""


MULTIPLIES_BYTES = any(name.startswith(("vnni", "avxvnni")) for name in RUN_HERE)
needs_bytes = pytest.mark.skipif(
    not MULTIPLIES_BYTES,
    reason="this CPU has no dot product of bytes (VNNI), and to run one would end the process; "
    "tests/codegen/test_microkernel.py builds and reads the code of each on any CPU",
)


def known(*names: str) -> str:
    """The first of some micro-kernels that this CPU runs."""
    return next(name for name in names if name in RUN_HERE)


F32 = known("avx512_f32_4x32", "avx2_f32_6x16", "sse2_f32_6x8")
"""A micro-kernel of float32, for tests that want any."""


@dataclass(frozen=True)
class Matmul:
    """C = A x B, of `batches` matrices if it is not 0; `shared` names an operand that all share.

    A is M x K, B is K x N and C is M x N, where `rows` says so of each; else they lie the other way
    round.
    """

    m: int
    n: int
    k: int
    type: str = "float32"
    rows: tuple[bool, bool, bool] = (True, True, True)
    batches: int = 0
    shared: str = ""

    @property
    def types(self) -> tuple[str, str, str]:
        """Of A, B and C."""
        return self.type, OTHER[self.type], SUMS[self.type]

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of A, B and C, as they lie."""
        m, n, k = self.m, self.n, self.k
        found = []
        for name, shape in (
            ("A", (m, k) if self.rows[0] else (k, m)),
            ("B", (k, n) if self.rows[1] else (n, k)),
            ("C", (m, n) if self.rows[2] else (n, m)),
        ):
            found.append((self.batches, *shape) if self._has_batches(name) else shape)
        return tuple(found)

    def _has_batches(self, name: str) -> bool:
        return self.batches > 0 and name != self.shared

    def function(self) -> PrimFunc:
        a, b = (
            te.placeholder(shape, dtype, name=name)
            for name, shape, dtype in zip("AB", self.shapes[:2], self.types[:2], strict=True)
        )
        r = te.reduce_axis((0, self.k), name="k")

        def element(s: tuple[Any, ...], i: Any, j: Any) -> Any:
            of_a = (i, r) if self.rows[0] else (r, i)
            of_b = (r, j) if self.rows[1] else (j, r)
            left = a[(*s, *of_a) if self._has_batches("A") else of_a]
            right = b[(*s, *of_b) if self._has_batches("B") else of_b]
            out = self.types[2]
            return te.sum(left.astype(out) * right.astype(out), axis=[r])

        def at(*place: Any) -> Any:
            *s, i, j = place
            return element(tuple(s), i, j) if self.rows[2] else element(tuple(s), j, i)

        def of_two(i: Any, j: Any) -> Any:
            return at(i, j)

        def of_three(s: Any, i: Any, j: Any) -> Any:
            return at(s, i, j)

        c = te.compute(self.shapes[2], of_three if self.batches else of_two, name="C")
        return te.create_prim_func([a, b, c])

    def operands(self) -> tuple[Array, Array, Array]:
        """A and B, whose elements name their places, and a C full of what is no result."""
        a, b = (
            positions(shape, dtype)
            for shape, dtype in zip(self.shapes[:2], self.types[:2], strict=True)
        )
        return a, b, np.full(self.shapes[2], 99, self.types[2])

    def plain(self, a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
        """The matrices as M x K, K x N and M x N, in the exact type."""
        exact = np.int64 if self.types[2] == "int32" else np.float64
        x, y, z = (
            (each if rows else each.swapaxes(-1, -2)).astype(exact)
            for each, rows in zip((a, b, c), self.rows, strict=True)
        )
        return x, y, z

    def assert_right(self, a: Array, b: Array, c: Array) -> None:
        """C is the product: exactly of integers, and as far as K roundings take floats off."""
        x, y, z = self.plain(a, b, c)
        away = np.abs(z - x @ y)
        rounding = {"float32": 2.0**-24, "float64": 2.0**-52, "int32": 0.0}[self.types[2]]
        # NumPy rounds a product of float64, too.
        bound = self.k * rounding * (np.abs(x) @ np.abs(y))
        wrong = np.argwhere(away > bound)
        assert len(wrong) == 0, f"{len(wrong)} wrong, the first at {wrong[0]}"


def positions(shape: tuple[int, ...], dtype: str) -> Array:
    """Numbers that name their place: integers of the whole range, floats of both signs.

    The periods are prime, so that rows, columns and neighbours differ; floats have as many bits as
    their type.
    """
    number = np.arange(int(np.prod(shape))).reshape(shape)
    if dtype == "uint8":
        return (number * 7 % 251 + (number % 2) * 4).astype(np.uint8)
    if dtype == "int8":
        return (number * 5 % 251 - 125 - (number % 3)).astype(np.int8)
    return ((number * 97 % 1009 - 500) / 3).astype(numpy_type(dtype))


def tiling_of(
    name: str, rows: int = 2, columns: int = 3, *, parallel: bool = False, pack_a: bool = False
) -> mfmadsl.CpuTiling:
    return mfmadsl.CpuTiling(name, rows, columns, parallel, pack_a)


def kernel_of(
    workload: Matmul,
    microkernel: Microkernel | str | None = None,
    cpu: Cpu | None = None,
    tiling: mfmadsl.CpuTiling | None = None,
    threads: int | None = 1,
) -> mfmadsl.CpuKernel:
    schedule = mfmadsl.cpu_gemm_schedule(workload.function(), microkernel, cpu, tiling, threads)
    return mfmadsl.build_for_cpu(schedule, cpu)


def check(
    workload: Matmul,
    microkernel: Microkernel | str | None = None,
    cpu: Cpu | None = None,
    tiling: mfmadsl.CpuTiling | None = None,
    threads: int | None = 1,
) -> mfmadsl.CpuKernel:
    """Run the product on this machine and compare it with NumPy's."""
    kernel = kernel_of(workload, microkernel, cpu, tiling, threads)
    a, b, c = workload.operands()
    kernel(a, b, c)
    workload.assert_right(a, b, c)
    return kernel


def around(workload: Matmul, microkernel: str, by: int) -> Matmul:
    """The product of one tile of a micro-kernel and a bit, each extent off by so many."""
    tile = microkernels()[microkernel]
    of = tile.a.type.dtype
    m, n, k = (max(1, 2 * extent + by) for extent in (tile.m, tile.n, 4 * tile.k))
    return replace(workload, m=m, n=n, k=k, type=of)
