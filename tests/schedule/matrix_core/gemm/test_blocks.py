"""Instructions of several blocks as products of a batch: right, within the budgets, or refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tvm import te, tirx
from tvm.tirx import PrimFunc

from mfmadsl import Gemm, build, emulate, find, gemm_schedule, sanitize
from mfmadsl.schedule import ScheduleError, Tiling, gemm_tiling
from mfmadsl.schedule.workload.dense import product
from tests.schedule.matrix_core.gemm.workloads import Array, random

SQUARES = "mfma_f32_16x16x4_4b_f16"


def batched(
    intrinsic: str, shape: tuple[int, int, int], batch: Any, transposed: tuple[bool, bool]
) -> PrimFunc:
    own = find(intrinsic)
    types = own.a.type.dtype, own.b.type.dtype, own.c.type.dtype
    return te.create_prim_func(list(product(shape, types, transposed, batch, "C")))


def is_right(
    intrinsic: str, arch: str, shape: tuple[int, int, int], batch: int,
    transposed: tuple[bool, bool] = (False, True), tiling: Tiling | None = None,
    run: Callable[..., Any] = sanitize,
) -> bool:  # fmt: skip
    m, n, k = shape
    function = batched(intrinsic, shape, batch, transposed)
    kernel = build(gemm_schedule(function, intrinsic, arch, tiling), arch)
    own, generator = find(intrinsic), np.random.default_rng(0)
    a: Array = random((batch, m, k), own.a.type.dtype, generator)
    b: Array = random((batch, n, k), own.b.type.dtype, generator)
    c = np.full((batch, m, n), 99, own.c.type.dtype)
    lies = a.swapaxes(1, 2) if transposed[0] else a, b if transposed[1] else b.swapaxes(1, 2)
    run(kernel, [*map(np.ascontiguousarray, lies), c])
    left, right = a.astype(np.float64), b.astype(np.float64).swapaxes(1, 2)
    size = np.abs(left) @ np.abs(right) * (k + 1) * 2.0**-24
    return bool((np.abs(c - left @ right) <= size).all())


@pytest.mark.parametrize(
    ("intrinsic", "arch", "shape", "batch", "transposed"),
    [
        ("mfma_f32_4x4x4_16b_f16", "gfx90a", (4, 4, 16), 32, (False, True)),
        ("mfma_f32_4x4x4_16b_f16", "gfx942", (3, 5, 18), 21, (True, False)),
        ("mfma_f32_16x16x4_4b_f16", "gfx942", (20, 37, 70), 10, (False, False)),
        ("mfma_f32_16x16x4_4b_f16", "gfx950", (33, 16, 130), 7, (True, True)),
        ("mfma_f32_32x32x4_2b_f16", "gfx908", (40, 33, 40), 3, (True, False)),
        ("mfma_f32_16x16x1_4b_f32", "gfx942", (16, 16, 33), 6, (True, True)),
        ("mfma_f32_4x4x1_16b_f32", "gfx950", (4, 4, 9), 17, (False, True)),
        ("mfma_f32_4x4x2_16b_bf16", "gfx908", (7, 4, 30), 20, (False, True)),
        ("mfma_f32_4x4x4_16b_bf16", "gfx942", (7, 4, 30), 20, (True, False)),
        ("mfma_i32_4x4x4_16b_i8", "gfx942", (5, 9, 64), 18, (False, False)),
        ("mfma_i32_32x32x4_2b_i8", "gfx90a", (32, 64, 64), 2, (True, True)),
        ("mfma_f64_4x4x4_4b_f64", "gfx90a", (6, 11, 21), 9, (False, True)),
    ],
)
def test_blocks_are_products_of_a_batch(
    intrinsic: str, arch: str, shape: tuple[int, int, int], batch: int,
    transposed: tuple[bool, bool],
) -> None:  # fmt: skip
    assert is_right(intrinsic, arch, shape, batch, transposed)


@pytest.mark.parametrize(
    ("arch", "changes"),
    [
        ("gfx942", {"split_k": 3}),
        ("gfx942", {"persistent": True, "group": 1}),
        ("gfx942", {"block": (32, 32), "waves": (2, 2)}),
        ("gfx950", {"stages": 2, "persistent": True}),
        ("gfx950", {"stages": 2, "swizzle": False}),
    ],
    ids=str,
)
def test_tilings_keep_their_meaning_for_each_of_a_batch(arch: str, changes: Any) -> None:
    shape = (30, 20, 512)
    tiling = gemm_tiling(batched(SQUARES, shape, 6, (False, True)), SQUARES, arch)
    assert is_right(SQUARES, arch, shape, 6, tiling=replace(tiling, **changes), run=emulate)


def test_the_instruction_of_a_tiling_is_taken() -> None:
    function = batched(SQUARES, (16, 16, 64), 8, (False, True))
    tiling = gemm_tiling(function, SQUARES)
    assert tiling.instruction == SQUARES
    kernel = build(gemm_schedule(function, tiling=tiling), "gfx942")
    assert "v_mfma_f32_16x16x4_4b_f16" in kernel.assembly


def test_a_batch_known_at_run_time_only() -> None:
    batch = tirx.Var("batch", "int32")
    kernel = build(gemm_schedule(of_variable(batch, 20, 24), SQUARES), "gfx942")
    generator = np.random.default_rng(0)
    a, b = (random((7, rows, 40), "float16", generator) for rows in (20, 24))
    c = np.full((7, 20, 24), 99, np.float32)
    sanitize(kernel, [a, b, c])
    expected = a.astype(np.float64) @ b.astype(np.float64).swapaxes(1, 2)
    np.testing.assert_allclose(c, expected, atol=1e-4)


def of_variable(batch: Any, m: Any, n: Any, alone: bool = False) -> PrimFunc:
    """Products of 40 along k; A is `alone` if it is the same for each."""
    a = te.placeholder((m, 40) if alone else (batch, m, 40), name="A", dtype="float16")
    b = te.placeholder((batch, n, 40), name="B", dtype="float16")
    r = te.reduce_axis((0, 40), name="r")

    def element(s: Any, i: Any, j: Any) -> Any:
        left = a[i, r] if alone else a[s, i, r]
        return te.sum(left.astype("float32") * b[s, j, r].astype("float32"), axis=[r])

    return te.create_prim_func([a, b, te.compute((batch, m, n), element, name="C")])


def test_an_epilogue_follows_each() -> None:
    gemm = Gemm(find("mfma_f32_4x4x4_16b_f16"), "gfx942", 6, 7, 40, batch=18, epilogue=("relu",))
    assert gemm.check(gemm.build()).agrees


@pytest.mark.parametrize("alone", [False, True])
def test_without_a_batch_there_are_no_blocks(alone: bool) -> None:
    several = f"{SQUARES} multiplies 4 blocks at once, each of another matrix of a batch, but the"
    if alone:
        function = of_variable(8, 16, tirx.Var("n", "int32"), alone=True)
        reason = f"{several} workload has one A for all of them: copy it for each"
    else:
        function = batched(SQUARES, (16, 16, 64), None, (False, True))
        reason = f"{several} workload has one product only"
    with pytest.raises(ScheduleError, match=reason):
        gemm_schedule(function, SQUARES)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"k_pack": 2}, "k_pack=2: mfma_f32_16x16x4_4b_f16 multiplies 4 blocks at once, of which"),
        (
            {"block": (128, 128), "waves": (2, 2), "k_step": 128},
            "4 times tiles of 128 and 128 rows of 256 bytes take 262144 bytes of LDS",
        ),
        ({"block": (128, 128), "waves": (1, 1), "k_step": 16}, "needs about 1240 registers"),
        ({"block": (8, 16)}, "8 of M for 1 waves are no whole tiles of mfma_f32_16x16x4_4b_f16"),
    ],
)
def test_budgets_count_blocks(changes: Any, reason: str) -> None:
    function = batched(SQUARES, (128, 128, 512), 8, (False, True))
    own = {"waves": (1, 1), "k_step": 32} | changes
    tiling = replace(gemm_tiling(function, SQUARES), **own)
    with pytest.raises(ScheduleError, match=reason):
        gemm_schedule(function, SQUARES, tiling=tiling)
