"""What a step of the ladder is: a tiling, and what it changes of the one before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tvm.s_tir import Schedule
from tvm.tirx import PrimFunc

import mfmadsl
from examples.product import Size
from mfmadsl import Kernel
from mfmadsl.schedule import Tiling

B_BY_COLUMNS = {"gfx942": True, "gfx950": False}
"""Whether B lies as N x K, so that a lane's K lies together in memory, or as K x N."""


@dataclass(frozen=True)
class Step:
    """A step of the ladder of one chip; `change` says in a line what is new."""

    name: str
    change: str
    arch: str
    tiling: Tiling

    @property
    def b_by_columns(self) -> bool:
        """Whether B lies as N x K."""
        return B_BY_COLUMNS[self.arch]

    def workload(self, size: Size) -> PrimFunc:
        """A, B of float16 and C of float32."""
        return mfmadsl.matmul(
            size.m, size.n, size.k, "float16", "float32", b_transposed=self.b_by_columns
        )

    def schedule(self, size: Size) -> Schedule:
        """Raises ScheduleError for a tiling that breaks a limit of the chip."""
        return mfmadsl.gemm_schedule(self.workload(size), arch=self.arch, tiling=self.tiling)

    def kernel(self, size: Size) -> Kernel:
        """The machine code of a product of that size."""
        return mfmadsl.build(self.schedule(size), self.arch)


TilingOf: TypeAlias = Callable[[str], Tiling]
"""The tiling of a step on a chip."""
