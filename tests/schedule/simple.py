"""`mfma_schedule` with the TensorIntrins of one module, of a product whose B lies as K x N."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from tvm.s_tir import Schedule
from tvm.tirx import PrimFunc

from mfmadsl.schedule import mfma_schedule

Factors = Sequence[int | None]


def simple_schedule(
    workload: PrimFunc, tile: ModuleType, i: Factors, j: Factors, k: Factors
) -> Schedule:
    return mfma_schedule(
        workload, tile.K, tile.IN_DTYPE, False, i, j, k,
        tile.index_map_A, tile.index_map_B, tile.index_map_C,
        tile.LOAD_A_SHARED, tile.LOAD_B_SHARED, tile.COMPUTE, tile.FILL, tile.STORE_GLOBAL,
    )  # fmt: skip
