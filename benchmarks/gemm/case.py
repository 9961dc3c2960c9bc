"""The products that `benchmarks/gemm` measures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import mfmadsl
from mfmadsl.model.numpy_type import numpy_type
from tests.schedule.matrix_core.gemm import case
from tests.schedule.matrix_core.gemm.case import CHIPS, ORDERS, TYPES

ORDER_NAMES = {"bt": "B transposed", "kn": "B as K x N"}
Shape = tuple[int, int, int]
LARGE: tuple[Shape, ...] = tuple((4096, 4096, k) for k in (1024, 4096, 8192))
LOW: Shape = (16, 4096, 4096)
LANGUAGE: tuple[Shape, ...] = (
    *((m, n, 4096) for n in (4096, 14336) for m in (1, 4, 16, 64)),
    (512, 4096, 4096), (2048, 14336, 4096), (2048, 4096, 14336), (4864, 4096, 8256),
    *((size, size, size) for size in (2048, 4096, 8192)),
)  # fmt: skip
"""Of language models: few rows, and prompts."""


class Case(case.Case):
    """One that is measured, with what a table says of it."""

    @property
    def title(self) -> str:
        return f"{self.arch} {self.kind}, {ORDER_NAMES[self.order]}"

    @property
    def output(self) -> str:
        return "int32" if self.kind == "i8" else "float32"

    @property
    def element_bytes(self) -> int:
        return 1 if self.kind in ("i8", "fp8") else 2

    @property
    def per_cycle(self) -> int:
        """Multiply-adds of a matrix core in a cycle of llvm-mca, which is four of the clock."""
        return (1024 if self.arch == "gfx942" else 2048) * 2 // self.element_bytes

    def workload(self, m: int, n: int, k: int, output: str = "") -> Any:
        """The product, with a C of another type where there is an `output`."""
        return mfmadsl.matmul(m, n, k, self.dtype, output or self.output, self.order == "bt")

    def arrays(self, m: int, n: int, k: int, output: str = "") -> list[Any]:
        """A and B of ones, and room for C, which is as `workload` says."""
        dtype, out = numpy_type(self.dtype), numpy_type(output or self.output)
        b = (n, k) if self.order == "bt" else (k, n)
        return [np.ones((m, k), dtype), np.ones(b, dtype), np.zeros((m, n), out)]


def cases(types: Sequence[str] = TYPES, orders: Sequence[str] = ORDERS) -> Iterator[Case]:
    for arch in CHIPS:
        for kind in types:
            for order in orders:
                yield Case(arch, kind, order)
