"""The least time of a tiling, at a glance, beside its estimate and the profiler."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.model import Tiling
from mfmadsl.schedule.matrix_core.gemm import gemm_tilings
from mfmadsl.schedule.matrix_core.tiling import choice
from mfmadsl.schedule.matrix_core.tiling.cost import Estimate, estimate
from mfmadsl.schedule.matrix_core.tiling.floor import floor_seconds
from mfmadsl.schedule.matrix_core.tiling.gemm_on_chip import GemmOnChip
from tests.schedule.matrix_core.gemm.test_edges import plain

CHIPS = st.sampled_from(["gfx908", "gfx90a", "gfx942", "gfx950"])
EXTENTS = st.integers(1, 5000)


def offered(workload: PrimFunc, arch: str) -> list[tuple[GemmOnChip, Tiling]]:
    """What is worth a look."""
    found: list[tuple[GemmOnChip, Tiling]] = []

    def recorded(gemm: GemmOnChip, tiling: Tiling) -> Estimate:
        found.append((gemm, tiling))
        return estimate(gemm, tiling)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "estimate", recorded)
        gemm_tilings(workload, arch=arch)
    return found


@given(arch=CHIPS, m=EXTENTS, n=EXTENTS, k=EXTENTS)
def test_no_estimate_is_below_it(arch: str, m: int, n: int, k: int) -> None:
    for gemm, tiling in offered(plain(m, n, k), arch):
        floor = floor_seconds(gemm, tiling)
        assert 0 < floor <= estimate(gemm, tiling).unlimited, tiling


@pytest.mark.parametrize("weights", ["q4f16", "gptq", "awq", "mxfp4", "int8"])
@pytest.mark.parametrize("m", [1, 16, 300])
def test_nor_one_of_small_weights(weights: str, m: int) -> None:
    group = 128 if weights == "q4f16" else None
    workload = mfmadsl.quantised_matmul(m, 1536, 2048, weights, "float16", group=group)
    for gemm, tiling in offered(workload, "gfx950"):
        assert 0 < floor_seconds(gemm, tiling) <= estimate(gemm, tiling).unlimited, tiling


def test_nor_a_profile() -> None:
    m, n, k = 512, 1024, 512
    workload = plain(m, n, k)
    arrays = [np.ones(shape, "float16") for shape in ((m, k), (n, k))] + [np.ones((m, n), "f4")]
    gemm, tiling = offered(workload, "gfx942")[0]
    schedule = mfmadsl.gemm_schedule(workload, arch="gfx942", tiling=tiling)
    on_chip = mfmadsl.profile(mfmadsl.build(schedule, "gfx942"), arrays).on_chip
    assert on_chip is not None
    assert floor_seconds(gemm, tiling) <= on_chip.seconds
