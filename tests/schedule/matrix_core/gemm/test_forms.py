"""The forms that a GEMM takes: symbolic, batched, split along K, persistent, of any tiling."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tvm import te
from tvm.script import tirx as T  # noqa: N812

import mfmadsl
from mfmadsl.schedule import Tiling, gemm_schedule, gemm_tiling
from tests.cases import drawn
from tests.schedule.matrix_core.gemm.workloads import Workload, random

HALF = Tiling((64, 64), 64, (2, 2), "mfma_f32_32x32x8_f16", 2)


def run(workload: Workload, tiling: Tiling | None = None, arch: str = "gfx942") -> mfmadsl.Kernel:
    kernel = mfmadsl.build(gemm_schedule(workload.function(), arch=arch, tiling=tiling), arch)
    a, b, c = workload.operands()
    mfmadsl.sanitize(kernel, [a, b, c])
    assert workload.error(a, b, c) <= 1
    return kernel


@pytest.mark.parametrize("a_rows", [True, False])
def test_one_kernel_for_every_m(a_rows: bool) -> None:
    shape = Workload(0, 200, 100, a_rows=a_rows)
    kernel = mfmadsl.build(gemm_schedule(shape.function(te.var("m"))), "gfx942")
    for m in (1, 17, 128, 1000):
        workload = replace(shape, m=m)
        a, b, c = workload.operands()
        mfmadsl.sanitize(kernel, [a, b, c])
        assert workload.error(a, b, c) <= 1


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("shared_b", [False, True])
def test_batches(symbolic: bool, shared_b: bool) -> None:
    """B has a matrix for each of the batch, or all share one."""
    batch = te.var("batch") if symbolic else 3
    a = te.placeholder((batch, 33, 70), name="A", dtype="float16")
    b = te.placeholder((70, 40) if shared_b else (batch, 70, 40), name="B", dtype="float16")
    r = te.reduce_axis((0, 70), name="k")

    def element(z: object, i: object, j: object) -> object:
        right = b[r, j] if shared_b else b[z, r, j]
        return te.sum(a[z, i, r].astype("float32") * right.astype("float32"), axis=[r])

    c = te.compute((batch, 33, 40), element, name="C")
    kernel = mfmadsl.build(gemm_schedule(te.create_prim_func([a, b, c])), "gfx942")
    generator = np.random.default_rng(1)
    left = random((3, 33, 70), "float16", generator)
    right = random((70, 40) if shared_b else (3, 70, 40), "float16", generator)
    result = np.full((3, 33, 40), 99, np.float32)
    mfmadsl.sanitize(kernel, [left, right, result])
    np.testing.assert_allclose(
        result, left.astype(np.float64) @ right.astype(np.float64), atol=1e-4
    )


@pytest.mark.parametrize("split", [2, 3, 5])
@pytest.mark.parametrize("k", [5 * 64, 5 * 64 + 13])
def test_split_k_adds_up_the_same_every_time(split: int, k: int) -> None:
    workload = Workload(70, 50, k)
    tiling = replace(HALF, split_k=split)
    kernel = run(workload, tiling)
    assert kernel.next is not None
    assert kernel.next.next is None
    results = []
    for _ in range(2):
        a, b, c = workload.operands()
        mfmadsl.emulate(kernel, [a, b, c])
        results.append(c)
    np.testing.assert_array_equal(results[0], results[1])


def test_split_k_is_chosen_where_the_chip_would_idle() -> None:
    assert gemm_tiling(Workload(16, 64, 32768).function()).split_k > 4
    assert gemm_tiling(Workload(4096, 4096, 4096).function()).split_k == 1


def test_persistent_workgroups_walk_over_all_tiles() -> None:
    workload = Workload(64 * 21, 64 * 16, 64)  # more tiles than compute units
    kernel = run(workload, replace(HALF, persistent=True))
    assert kernel.grid == (304, 1, 1)
    assert gemm_tiling(Workload(16384, 16384, 4096).function()).persistent


def test_persistent_with_a_symbolic_m() -> None:
    shape = Workload(0, 64 * 40, 64)
    tiling = replace(HALF, persistent=True)
    kernel = mfmadsl.build(gemm_schedule(shape.function(te.var("m")), tiling=tiling), "gfx942")
    for m in (1, 700):
        a, b, c = replace(shape, m=m).operands()
        mfmadsl.emulate(kernel, [a, b, c])
        assert replace(shape, m=m).error(a, b, c) <= 1


@pytest.mark.parametrize(
    ("block", "waves", "k_step", "k_pack", "instruction", "swizzle", "b_rows"),
    drawn(
        [
            (*sizes, *others)
            for sizes in (
                ((64, 128), (1, 4), 64, 2), ((128, 32), (4, 1), 128, 1), ((32, 32), (1, 1), 64, 1)
            )
            for others in product(
                ["mfma_f32_32x32x8_f16", "mfma_f32_16x16x16_f16"], [True, False], [True, False]
            )
        ],
        10,
    ),
)  # fmt: skip
def test_tilings(
    block: tuple[int, int], waves: tuple[int, int], k_step: int, k_pack: int, instruction: str,
    swizzle: bool, b_rows: bool,
) -> None:  # fmt: skip
    tiling = Tiling(block, k_step, waves, instruction, k_pack, swizzle)
    run(Workload(130, 70, 150, b_rows=b_rows), tiling)


@pytest.mark.parametrize(
    ("arch", "k", "b_rows"),
    drawn(product(["gfx942", "gfx950"], [40, 64, 128, 192 + 13, 320, 384], [True, False]), 10),
)
def test_two_tiles_in_the_lds(arch: str, k: int, b_rows: bool) -> None:
    """On gfx950 loads go straight into them."""
    instruction = {"gfx942": "mfma_f32_32x32x8_f16", "gfx950": "mfma_f32_32x32x16_f16"}[arch]
    tiling = Tiling((64, 128), 64, (2, 2), instruction, 2 if arch == "gfx942" else 1, stages=2)
    kernel = run(Workload(130, 136, k, b_rows=b_rows), tiling, arch)
    straight = any("offen lds" in line for line in kernel.assembly.splitlines())
    assert straight == (arch == "gfx950" and k % 2 == 0)


def test_two_tiles_in_the_lds_of_persistent_workgroups() -> None:
    tiling = Tiling((64, 64), 64, (2, 2), "mfma_f32_32x32x16_f16", 1, stages=2, persistent=True)
    kernel = run(Workload(64 * 20, 64 * 16, 192), tiling, "gfx950")
    assert kernel.grid == (256, 1, 1)


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("k", [10 * 32, 8 * 32 + 8, 3 * 32, 10 * 32 + 13])
def test_several_tiles_of_a_part_of_k(stages: int, k: int) -> None:
    tiling = Tiling((64, 64), 32, (2, 2), "mfma_f32_32x32x16_f16", 1, stages=stages, split_k=2)
    run(Workload(70, 50, k), tiling, "gfx950")


SHORT = [32 * turns for turns in range(1, 10)] + [8, 40, 3 * 32 + 8, 7 * 32 + 6, 8 * 32 + 2]


@pytest.mark.parametrize(("k", "stages"), drawn(product(SHORT, [1, 2, 3, 4]), 16))
def test_fewer_turns_than_stages_and_more(stages: int, k: int) -> None:
    """Two halves of the sums, in one wave or in four; the short step goes through registers."""
    waves = (1, 1) if k % 64 else (2, 1)
    block = (128, 64) if k % 64 else (256, 64)
    tiling = Tiling(block, 32, waves, "mfma_f32_32x32x16_f16", 1, stages=stages)
    kernel = run(Workload(260, 72, k), tiling, "gfx950")
    straight = any("offen lds" in line for line in kernel.assembly.splitlines())
    assert straight == (stages > 1)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("stages", "b_rows", "kind"),
    drawn(
        product(
            [2, 3, 4], [True, False], ["float16", "bfloat16", "int8", "float8_e4m3fn", "float32"]
        ),
        12,
    ),
)
def test_stages_of_every_type(stages: int, b_rows: bool, kind: str) -> None:
    size = {"float32": 4, "int8": 1, "float8_e4m3fn": 1}.get(kind, 2)
    shape = Workload(200, 136, 1024 // size + 48, kind, kind, b_rows=b_rows)
    tiling = gemm_tiling(shape.function(), arch="gfx950")
    tiling = replace(tiling, block=(128, 128), waves=(2, 2), k_step=128 // size, stages=stages,
                     split_k=1, k_waves=1)  # fmt: skip
    if kind == "float8_e4m3fn":
        tiling = replace(tiling, instruction="mfma_scale_f32_32x32x64_f8f6f4_fp8_fp8")
    run(shape, tiling, "gfx950")


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_several_tiles_of_a_sum_of_unknown_length(stages: int) -> None:
    k = te.var("k")
    a = te.placeholder((128, k), name="A", dtype="float16")
    b = te.placeholder((k, 64), name="B", dtype="float16")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute(
        (128, 64),
        lambda i, j: te.sum(a[i, r].astype("float32") * b[r, j].astype("float32"), axis=[r]),
        name="C",
    )
    tiling = Tiling((128, 64), 32, (2, 1), "mfma_f32_32x32x16_f16", 1, stages=stages)
    schedule = gemm_schedule(te.create_prim_func([a, b, c]), arch="gfx950", tiling=tiling)
    kernel = mfmadsl.build(schedule, "gfx950")
    for turns in range(1, 10):
        workload = Workload(128, 64, 32 * turns, b_rows=False)
        x, y, z = workload.operands()
        mfmadsl.sanitize(kernel, [x, y, z])
        assert workload.error(x, y, z) <= 1


@pytest.mark.parametrize("stages", [3, 4])
@pytest.mark.parametrize("k", [64, 192 + 8, 384])
def test_several_tiles_of_persistent_workgroups(stages: int, k: int) -> None:
    tiling = Tiling((64, 64), 32, (2, 2), "mfma_f32_32x32x16_f16", 1, stages=stages,
                    persistent=True)  # fmt: skip
    run(Workload(64 * 20, 64 * 16, k), tiling, "gfx950")


def test_an_instruction_of_your_own_choice() -> None:
    workload = Workload(50, 60, 70, "float32", "float32")
    schedule = gemm_schedule(workload.function(), intrinsic="mfma_f32_32x32x4_xf32")
    kernel = mfmadsl.build(schedule, "gfx942")
    assert "v_mfma_f32_32x32x4_xf32" in kernel.assembly
    a, b, c = workload.operands()
    mfmadsl.sanitize(kernel, [a, b, c])
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64).T, atol=0.05)


def test_several_loops_that_lie_together_are_one() -> None:
    """x[batch, s, k] times w[n, k]: batch and s are rows of one matrix."""
    x = te.placeholder((3, 20, 64), name="x", dtype="float16")
    w = te.placeholder((48, 64), name="w", dtype="float16")
    r = te.reduce_axis((0, 64), name="k")
    y = te.compute(
        (3, 20, 48),
        lambda z, s, n: te.sum(x[z, s, r].astype("float32") * w[n, r].astype("float32"), axis=[r]),
        name="y",
    )
    schedule = gemm_schedule(te.create_prim_func([x, w, y]), tiling=HALF)
    kernel = mfmadsl.build(schedule, "gfx942")
    assert kernel.grid == (1, 1, 1)
    generator = np.random.default_rng(1)
    left, right = random((3, 20, 64), "float16", generator), random((48, 64), "float16", generator)
    result = np.zeros((3, 20, 48), np.float32)
    mfmadsl.sanitize(kernel, [left, right, result])
    np.testing.assert_allclose(result, left.astype(np.float64) @ right.T.astype(np.float64),
                               atol=1e-4)  # fmt: skip


@T.prim_func(s_tir=True)  # type: ignore[untyped-decorator]
def linear(x: T.handle, w: T.handle, bias: T.handle, y: T.handle) -> None:
    """As Relax writes it: 64-bit loops, a symbolic length, and sums in float16."""
    n = T.int64()
    X = T.match_buffer(x, (T.int64(2), n, T.int64(64)), "float16")  # noqa: N806
    W = T.match_buffer(w, (T.int64(64), T.int64(48)), "float16")  # noqa: N806
    B = T.match_buffer(bias, (T.int64(48),), "float16")  # noqa: N806
    Y = T.match_buffer(y, (T.int64(2), n, T.int64(48)), "float16")  # noqa: N806
    C = T.sblock_alloc_buffer((T.int64(2), n, T.int64(48)), "float16")  # noqa: N806
    for z, i, j, k in T.grid(T.int64(2), n, T.int64(48), T.int64(64)):
        with T.sblock("matmul"):
            vz, vi, vj, vk = T.axis.remap("SSSR", [z, i, j, k])
            with T.init():
                C[vz, vi, vj] = T.float16(0)
            C[vz, vi, vj] = C[vz, vi, vj] + X[vz, vi, vk] * W[vk, vj]
    for z, i, j in T.grid(T.int64(2), n, T.int64(48)):
        with T.sblock("add"):
            vz, vi, vj = T.axis.remap("SSS", [z, i, j])
            Y[vz, vi, vj] = C[vz, vi, vj] + B[vj]


def test_a_workload_of_relax() -> None:
    kernel = mfmadsl.build(gemm_schedule(linear), "gfx942")
    generator = np.random.default_rng(2)
    w, bias = random((64, 48), "float16", generator), random((48,), "float16", generator)
    for n in (1, 37):
        x, y = random((2, n, 64), "float16", generator), np.zeros((2, n, 48), np.float16)
        mfmadsl.sanitize(kernel, [x, w, bias, y])
        expected = x.astype(np.float64) @ w.astype(np.float64) + bias.astype(np.float64)
        np.testing.assert_allclose(y, expected, rtol=2.0**-10, atol=2.0**-5)
