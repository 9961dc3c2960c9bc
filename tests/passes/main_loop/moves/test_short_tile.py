"""Rows of a tile that are past the edge of A for certain take no place in the LDS."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tvm import te

import mfmadsl
from mfmadsl.schedule import Tiling, gemm_schedule
from tests.schedule.matrix_core.gemm.test_forms import run
from tests.schedule.matrix_core.gemm.workloads import Workload

TILING = Tiling((32, 32), 256, (1, 2), "mfma_f32_16x16x16_f16", 2)
"""Of whose 32 rows of A 128 threads copy four at a time."""

ROW = 256 * 2


@pytest.mark.parametrize(("m", "rows"), [(32, 32), (9, 32), (8, 8), (5, 8), (4, 4), (2, 4), (1, 4)])
def test_there_are_as_many_rows_as_are_copied_together(m: int, rows: int) -> None:
    """If their number is a power of two."""
    assert run(Workload(m, 70, 2000), TILING).lds_bytes == (rows + 32) * ROW


def test_columns_of_b_are_the_same() -> None:
    assert run(Workload(70, 3, 2000), TILING).lds_bytes == (32 + 4) * ROW


@pytest.mark.parametrize("stages", [2, 3])
def test_loads_straight_into_the_lds(stages: int) -> None:
    """64 lanes of a wave copy two rows, and two waves four of them."""
    tiling = replace(TILING, instruction="mfma_f32_16x16x32_f16", k_pack=1, stages=stages)
    kernel = run(Workload(1, 70, 8 * 256), tiling, "gfx950")
    assert any("offen lds" in line for line in kernel.assembly.splitlines())
    assert kernel.lds_bytes == stages * (4 + 32) * ROW


@pytest.mark.parametrize("workload", [
    Workload(1, 70, 256),  # in one iteration nothing tells the end of K from this edge
    Workload(3, 70, 2000, a_rows=False),  # rows lie across
    Workload(40, 70, 2000),  # another tile is whole
])  # fmt: skip
def test_other_tiles_stay(workload: Workload) -> None:
    assert run(workload, TILING).lds_bytes >= 64 * ROW


def test_rows_of_unknown_number_stay() -> None:
    shape = Workload(0, 72, 400)
    kernel = mfmadsl.build(gemm_schedule(shape.function(te.var("m")), tiling=TILING), "gfx942")
    a, b, c = replace(shape, m=1).operands()
    assert not mfmadsl.sanitize(kernel, [a, b, c]).faults
    assert replace(shape, m=1).error(a, b, c) <= 1
    assert kernel.lds_bytes == 64 * ROW
