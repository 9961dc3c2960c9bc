"""Small problems for the ten kernels, with operands of which each element is told by its value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm.tirx import PrimFunc

from examples.blackwell_gemm.kernels.v01_one_tile import hgemm_v1
from examples.blackwell_gemm.kernels.v02_k_loop import hgemm_v2
from examples.blackwell_gemm.kernels.v03_grid import hgemm_v3
from examples.blackwell_gemm.kernels.v04_tma import hgemm_v4
from examples.blackwell_gemm.kernels.v05_two_stages import hgemm_v5
from examples.blackwell_gemm.kernels.v06_persistent import hgemm_v6
from examples.blackwell_gemm.kernels.v07_warp_roles import hgemm_v7
from examples.blackwell_gemm.kernels.v08_four_stages import hgemm_v8
from examples.blackwell_gemm.kernels.v09_clusters import hgemm_v9
from examples.blackwell_gemm.kernels.v10_two_consumers import hgemm_v10


@dataclass(frozen=True)
class Problem:
    """A kernel at a size; `sms` is none for kernels that have a CTA for each tile.

    Each has a stage that is filled twice, and an SM that computes two tiles, where the kernel can.
    """

    make: Callable[..., PrimFunc]
    m: int
    n: int
    k: int
    sms: int | None = None

    @cached_property
    def kernel(self) -> PrimFunc:
        """The kernel, not lowered. To make one takes longer than to execute it."""
        more = {} if self.sms is None else {"sms": self.sms}
        return self.make(self.m, self.n, self.k, **more)

    def arrays(self) -> list[NDArray[Any]]:
        """A, B by columns, and room for C."""
        return [
            values(self.m, self.k, 37),
            values(self.n, self.k, 53),
            np.zeros((self.m, self.n), np.float16),
        ]


def values(rows: int, columns: int, step: int) -> NDArray[np.float16]:
    """Multiples of 1/128 up to 1, none like its neighbours: products and their sums are exact."""
    numbers = np.arange(rows * columns).reshape(rows, columns) * step % 251 - 125
    return (numbers / 128).astype(np.float16)


def product(arrays: list[NDArray[Any]]) -> NDArray[np.float16]:
    """A x B^T in float64, which is exact, and rounded once."""
    a, b = (array.astype(np.float64) for array in arrays[:2])
    return (a @ b.T).astype(np.float16)


PROBLEMS = {
    1: Problem(hgemm_v1, 128, 128, 64),
    2: Problem(hgemm_v2, 128, 128, 192),
    3: Problem(hgemm_v3, 256, 128, 128),
    4: Problem(hgemm_v4, 128, 256, 192),
    5: Problem(hgemm_v5, 128, 256, 320),
    6: Problem(hgemm_v6, 128, 384, 192, sms=2),
    7: Problem(hgemm_v7, 256, 128, 192, sms=1),
    8: Problem(hgemm_v8, 128, 384, 320, sms=2),
    9: Problem(hgemm_v9, 512, 256, 320, sms=2),
    10: Problem(hgemm_v10, 1024, 256, 320, sms=2),
}
