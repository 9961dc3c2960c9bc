"""Tilings of no stages, whose fragments come from memory: beside NumPy, sanitized, and refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tvm import te

import mfmadsl
from mfmadsl.gemm.quantised import random_weights, weights_of
from mfmadsl.model import architecture
from mfmadsl.model.numpy_type import numpy_type
from mfmadsl.passes.main_loop.analysis.register_use import register_sets
from mfmadsl.schedule import ScheduleError, Tiling, gemm_schedule, gemm_tiling
from mfmadsl.schedule.workload.quantised import FORMATS
from tests.schedule.matrix_core.gemm.test_edges import plain
from tests.schedule.matrix_core.gemm.test_forms import run
from tests.schedule.matrix_core.gemm.workloads import Workload

SMALL = Tiling((16, 64), 64, (1, 1), "mfma_f32_16x16x16_f16", 2, stages=0)


@pytest.mark.parametrize(("m", "n", "k", "by_rows"), [(1, 128, 320, True), (19, 70, 299, False)])
def test_edges(m: int, n: int, k: int, by_rows: bool) -> None:
    kernel = run(Workload(m, n, k, a_rows=by_rows, b_rows=by_rows), SMALL)
    assert kernel.lds_bytes == 0
    assert "s_barrier" not in kernel.assembly


@pytest.mark.parametrize(("split_k", "one_launch"), [(2, False), (3, True)])
def test_parts_of_waves_and_of_workgroups(split_k: int, one_launch: bool) -> None:
    tiling = replace(SMALL, k_waves=4, k_step=128, split_k=split_k, one_launch=one_launch)
    run(Workload(5, 136, 5 * 128 + 3), tiling)


@pytest.mark.parametrize(
    ("kind", "arch", "instruction", "k_pack"),
    [
        ("int8", "gfx942", "mfma_i32_16x16x32_i8", 2),
        ("float64", "gfx90a", "mfma_f64_16x16x4_f64", 1),
    ],
)
def test_types(kind: str, arch: str, instruction: str, k_pack: int) -> None:
    tiling = replace(SMALL, instruction=instruction, k_pack=k_pack, waves=(1, 2), k_waves=2)
    run(Workload(16, 70, 2 * 128 + 3, kind, kind), replace(tiling, k_step=128), arch)


@pytest.mark.parametrize(
    ("name", "dtype", "arch", "columns"),
    [
        ("awq", "float16", "gfx942", 128),
        ("gptq", "bfloat16", "gfx950", 64),
        ("mxfp4", "float16", "gfx942", 32),
    ],
)
def test_weights_of_few_bits(name: str, dtype: str, arch: str, columns: int) -> None:
    """A lane has as many columns as a word of AWQ has rows; K ends within a step."""
    m, n, k, stored = 3, 136, 384, FORMATS[name]
    group = stored.group or k
    arrays = random_weights(np.random.default_rng(0), stored, n, k, group, dtype)
    a = np.random.default_rng(1).integers(-4, 5, (m, k)).astype(numpy_type(dtype))
    workload = mfmadsl.quantised_matmul(m, n, k, name, dtype)
    short = {"float16": "f16", "bfloat16": "bf16"}[dtype]
    own = ("16x16x16", 2) if arch == "gfx942" else ("16x16x32", 1)
    tiling = replace(
        SMALL, block=(16, columns), k_waves=2, k_step=128, instruction=f"mfma_f32_{own[0]}_{short}",
        k_pack=own[1],
    )  # fmt: skip
    kernel = mfmadsl.build(gemm_schedule(workload, arch=arch, tiling=tiling), arch)
    assert not kernel.remarks
    c = np.full((m, n), np.nan, np.float32)
    mfmadsl.sanitize(kernel, [a, *arrays, c])
    left, right = a.astype(float), weights_of(stored, arrays, group, dtype).astype(float)
    bound = 2 * k * 2.0**-24 * (np.abs(left) @ np.abs(right).T)
    assert (np.abs(c - left @ right.T) <= bound).all()


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("name", ["awq", "gptq"])
def test_few_rows_of_weights_of_four_bits_take_them(name: str, arch: str) -> None:
    workload = mfmadsl.quantised_matmul(16, 14336, 4096, name, "float16")
    assert gemm_tiling(workload, arch=arch).stages == 0
    many = mfmadsl.quantised_matmul(300, 14336, 4096, name, "float16")
    assert gemm_tiling(many, arch=arch).stages > 0


def test_loads_in_flight_fill_the_vector_l1_while_a_wave_computes() -> None:
    chip = architecture("gfx942")
    assert register_sets(19, 16, 224, 16, chip) == 2
    assert register_sets(19, 8, 224, 16, chip) == 2
    assert register_sets(30, 16, 224, 32, chip) == 1  # there are registers for no more
    assert register_sets(19, 4, 224, 16, chip) == 3
    assert register_sets(19, 4, 2 * chip.compute_units, 16, chip) == 2
    assert register_sets(1, 4, 1, 16, chip) == 4
    assert register_sets(300, 4, 1, 16, chip) == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"persistent": True}, "no workgroup walks over tiles"),
        ({"overlap": "fragments"}, "overlap=fragments is for tiles in the LDS"),
        ({"k_step": 48}, "k_step: 48 is no power of two"),
        ({"k_step": 16}, "needs a multiple of 32, a register step"),
        ({"k_step": 64, "k_waves": 4}, "takes a multiple of 32, a register step"),
        ({"stages": -1}, "there are 0 to 4, not -1"),
        ({"block": (16, 1024)}, "registers a lane"),
    ],
)
def test_refused(changes: dict[str, Any], said: str) -> None:
    workload = mfmadsl.matmul(16, 1024, 256, "float16", "float32", b_transposed=True)
    with pytest.raises(ScheduleError, match=said):
        gemm_schedule(workload, tiling=replace(SMALL, **changes))


def test_refused_without_a_number_of_steps() -> None:
    with pytest.raises(ScheduleError, match="but K is a symbol"):
        gemm_schedule(plain(16, 64, te.var("k")), tiling=SMALL)


def test_refused_of_scaled_products() -> None:
    workload = mfmadsl.scaled_matmul(16, 64, 256, "float4_e2m1fn")
    tiling = replace(gemm_tiling(workload, arch="gfx950"), stages=0)
    with pytest.raises(ScheduleError, match="there are 1 to 4, not 0"):
        gemm_schedule(workload, arch="gfx950", tiling=tiling)
