"""Kernels that keep fewer addresses in registers: as right as others, and they do not spill."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from tvm.s_tir import Schedule
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.backend.gpu.lower import device_module
from mfmadsl.passes.main_loop.analysis.register_use import RegisterUse
from tests.schedule.matrix_core.gemm.workloads import Workload
from tests.schedule.random_workloads import RandomWorkload, check

_THREAD_ANEW = 'asm sideeffect "", "=v,0"(i32 range('


def _lean(lower: Any, name: Any, kernel: Any, chip: Any, _: RegisterUse) -> Any:
    return lower(name, kernel, chip, RegisterUse.LEAN)


@pytest.fixture
def lean(monkeypatch: pytest.MonkeyPatch) -> None:
    """All kernels are."""
    builder = sys.modules["mfmadsl.backend.gpu.build"]
    monkeypatch.setattr(builder, "device_module", partial(_lean, device_module))


@pytest.mark.parametrize("arch", ["gfx908", "gfx942", "gfx950"])
@pytest.mark.parametrize("a_rows", [True, False])
@pytest.mark.parametrize("b_rows", [True, False])
@pytest.mark.parametrize("extents", [(64, 128, 192), (65, 131, 197), (63, 60, 7)], ids=str)
@pytest.mark.usefixtures("lean")
def test_it_is_right(arch: str, a_rows: bool, b_rows: bool, extents: tuple[int, int, int]) -> None:
    workload = Workload(*extents, a_rows=a_rows, b_rows=b_rows)

    def scheduled(function: PrimFunc) -> Schedule:
        tiling = mfmadsl.gemm_tiling(function, arch=arch)
        return mfmadsl.gemm_schedule(function, arch=arch, tiling=tiling)

    assert check(RandomWorkload(0, workload.function(), {}, (), True), scheduled, arch)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
@pytest.mark.usefixtures("lean")
def test_elements_of_other_sizes(dtype: str) -> None:
    workload = Workload(65, 130, 99, dtype, dtype, a_rows=False)
    function = workload.function()
    assert check(RandomWorkload(0, function, {}, (), True), mfmadsl.gemm_schedule, "gfx942")


def test_a_kernel_that_spills_is_made_again() -> None:
    """Rows that are no whole words, both turned, by few waves: too many addresses."""
    function = Workload(4096, 4864, 997, a_rows=False, b_rows=False, c_rows=False).function()
    tiling = mfmadsl.gemm_tiling(function, arch="gfx950")
    tiling = replace(tiling, block=(256, 256), waves=(2, 2))
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(function, arch="gfx950", tiling=tiling), "gfx950")
    assert kernel.registers.spilled == kernel.registers.scratch_bytes == 0
    assert _THREAD_ANEW in kernel.optimized


def test_a_kernel_that_does_not_spill_is_left_as_it_is() -> None:
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(Workload(4096, 4096, 4096).function()))
    assert _THREAD_ANEW not in kernel.optimized
