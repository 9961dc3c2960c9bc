"""Waves that share each step of K, and add up their sums in the LDS: beside NumPy, sanitized."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tvm import te, tirx

import mfmadsl
from mfmadsl.schedule import ScheduleError, Tiling, gemm_schedule, gemm_tiling
from tests.schedule.matrix_core.gemm.test_epilogue import element_wise, f32
from tests.schedule.matrix_core.gemm.test_forms import run
from tests.schedule.matrix_core.gemm.workloads import FP8, Workload, random, with_epilogue

SMALL = Tiling((32, 32), 256, (1, 2), "mfma_f32_16x16x16_f16", 2, k_waves=4)
DIRECT = replace(SMALL, instruction="mfma_f32_16x16x32_f16", k_pack=1)


@pytest.mark.parametrize("k_waves", [1, 2, 4])
@pytest.mark.parametrize(("m", "n", "k"), [(32, 64, 512), (1, 64, 384), (33, 70, 300), (5, 3, 7)])
def test_edges(k_waves: int, m: int, n: int, k: int) -> None:
    kernel = run(Workload(m, n, k), replace(SMALL, k_waves=k_waves))
    assert kernel.block == (64, 2 * k_waves, 1)
    assert kernel.next is None


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize(("a_rows", "b_rows"), [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("m", [1, 17])
def test_loads_straight_into_the_lds(stages: int, a_rows: bool, b_rows: bool, m: int) -> None:
    workload = Workload(m, 72, 8 * 256 + 8, a_rows=a_rows, b_rows=b_rows)
    kernel = run(workload, replace(DIRECT, stages=stages), "gfx950")
    straight = any("offen lds" in line for line in kernel.assembly.splitlines())
    assert straight == (stages > 1 and (a_rows or m == 1))


@pytest.mark.parametrize(
    ("kind", "instruction", "k_step"),
    [
        ("bfloat16", "mfma_f32_32x32x8_bf16", 128),
        ("int8", "mfma_i32_16x16x32_i8", 256),
        (FP8["gfx942"], "mfma_f32_16x16x32_fp8_fp8", 256),
        ("float32", "mfma_f32_16x16x4_f32", 64),
        ("float64", "mfma_f64_16x16x4_f64", 32),
    ],
)
def test_types(kind: str, instruction: str, k_step: int) -> None:
    tiling = Tiling((32, 64), k_step, (1, 2), instruction, 1, k_waves=2)
    run(Workload(40, 70, 2 * k_step + 3, kind, kind), tiling)


@pytest.mark.parametrize("b_rows", [True, False])
def test_extents_of_unknown_length(b_rows: bool) -> None:
    shape = Workload(0, 72, 400, b_rows=b_rows)
    kernel = mfmadsl.build(gemm_schedule(shape.function(te.var("m")), tiling=SMALL), "gfx942")
    for m in (1, 32, 70):
        a, b, c = replace(shape, m=m).operands()
        mfmadsl.sanitize(kernel, [a, b, c])
        assert replace(shape, m=m).error(a, b, c) <= 1


@pytest.mark.parametrize("split_k", [2, 3])
def test_parts_of_workgroups_and_of_waves(split_k: int) -> None:
    kernel = run(Workload(33, 70, 5 * 256 + 3), replace(SMALL, split_k=split_k))
    assert kernel.next is not None


@pytest.mark.parametrize("k", [256, 3 * 256 + 5])
def test_persistent_workgroups(k: int) -> None:
    """More tiles than compute units, so that some workgroups have two."""
    kernel = run(Workload(32 * 20, 32 * 16, k), replace(SMALL, persistent=True))
    assert kernel.grid == (304, 1, 1)


def test_the_sum_is_the_same_every_time() -> None:
    workload = Workload(30, 70, 1000)
    kernel = run(workload, SMALL)
    results = []
    for _ in range(2):
        a, b, c = workload.operands()
        mfmadsl.emulate(kernel, [a, b, c])
        results.append(c)
    first, second = results
    np.testing.assert_array_equal(first, second)


def batch(count: int, m: int, n: int, k: int) -> Any:
    a = te.placeholder((count, m, k), name="A", dtype="float16")
    b = te.placeholder((count, k, n), name="B", dtype="float16")
    r = te.reduce_axis((0, k), name="k")

    def element(z: Any, i: Any, j: Any) -> Any:
        return te.sum(a[z, i, r].astype("float32") * b[z, r, j].astype("float32"), axis=[r])

    return te.create_prim_func([a, b, te.compute((count, m, n), element, name="C")])


def test_a_batch() -> None:
    kernel = mfmadsl.build(gemm_schedule(batch(3, 33, 40, 300), tiling=SMALL), "gfx942")
    generator = np.random.default_rng(1)
    left, right = (random(shape, "float16", generator) for shape in ((3, 33, 300), (3, 300, 40)))
    result = np.full((3, 33, 40), 99, np.float32)
    mfmadsl.sanitize(kernel, [left, right, result])
    wanted = left.astype(np.float64) @ right.astype(np.float64)
    np.testing.assert_allclose(result, wanted, atol=1e-4)


def test_an_epilogue() -> None:
    """With a bias, to half precision, over edges of all extents."""
    shape = Workload(37, 72, 300)

    def bias_and_relu(c: Any, i: Any, j: Any, bias: Any) -> Any:
        return tirx.max(c + bias[j].astype("float32"), f32(0)).astype("float16")

    function = with_epilogue(shape, element_wise(bias_and_relu), {"bias": ((shape.n,), "float16")})
    kernel = mfmadsl.build(gemm_schedule(function, tiling=SMALL), "gfx942")
    assert kernel.next is None
    generator = np.random.default_rng(5)
    a, b = (random(s, "float16", generator) for s in ((37, 300), (72, 300)))
    bias, result = random((72,), "float16", generator), np.full((37, 72), 99, np.float16)
    mfmadsl.sanitize(kernel, [a, b, bias, result])
    wanted = np.maximum(a.astype(np.float64) @ b.astype(np.float64).T + bias, 0)
    np.testing.assert_allclose(result, wanted, rtol=2**-10, atol=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k_waves": 3}, "k_waves: 3 is no power of two"),
        ({"k_waves": 0}, "k_waves: 0 is no power of two"),
        ({"k_waves": 8}, "k_step=256 for k_waves=8: each of the waves takes a multiple of 64"),
        ({"block": (16, 48), "waves": (1, 1), "k_waves": 8, "k_step": 512},
         "k_waves=8 makes 512 threads, which 16 x 48 sums are no whole number for each of"),
        ({"block": (32, 64), "waves": (2, 4)}, "2 x 4 x 4 waves of 64 lanes are 2048 threads"),
        ({"block": (128, 32)}, "and the sums of 4 waves along K take 81920 bytes of LDS"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_not_legal_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        gemm_schedule(Workload(64, 64, 512).function(), tiling=replace(SMALL, **change))
    assert message in str(caught.value)


def test_instructions_of_several_blocks_are_refused() -> None:
    tiling = Tiling((16, 16), 16, (1, 1), "mfma_f32_16x16x4_4b_f16", 1, k_waves=2)
    with pytest.raises(
        ScheduleError, match="k_waves=2: mfma_f32_16x16x4_4b_f16 multiplies 4 blocks at once"
    ):
        gemm_schedule(batch(4, 16, 16, 64), tiling=tiling)


def test_numbers_of_numpy_are_numbers() -> None:
    """As a loop over numbers of NumPy has them."""
    numbers: dict[str, Any] = {"block": tuple(np.array(SMALL.block)), "k_step": np.int64(256)}
    tiling = replace(SMALL, **numbers)
    run(Workload(20, 40, 300), tiling)


def test_waves_along_k_are_chosen_where_they_hide_more_than_their_sums_cost() -> None:
    assert gemm_tiling(Workload(16, 4096, 4096).function()).k_waves == 4
    assert gemm_tiling(Workload(1024, 1024, 1024).function(), arch="gfx950").k_waves == 1
    assert gemm_tiling(Workload(4096, 4096, 4096).function()).k_waves == 1


@pytest.mark.parametrize("m", [1, 17])
@pytest.mark.parametrize(
    ("columns", "place"),
    [
        (2 * 520, lambda r: 2 * r),
        (520, lambda r: 519 - r),
        (520, lambda r: r // 8 * 8 + (r % 8 + 4) % 8),
        (520, lambda r: r // 2),
    ],
    ids=["every second", "backwards", "halves of a chunk swapped", "each twice"],
)
def test_what_is_no_neighbour_in_memory_goes_through_registers(
    m: int, columns: int, place: Any
) -> None:
    """A chunk of the LDS is loaded straight only if it lies in memory as it is."""
    n, k = 40, 520
    x = te.placeholder((m, columns), name="X", dtype="float16")
    b = te.placeholder((n, k), name="B", dtype="float16")
    a = te.compute((m, k), lambda i, j: x[i, place(j)], name="A")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(a[i, r].astype("float32") * b[j, r].astype("float32"), axis=[r]),
        name="C",
    )
    tiling = replace(DIRECT, stages=2, k_waves=2)
    schedule = gemm_schedule(te.create_prim_func([x, b, c]), arch="gfx950", tiling=tiling)
    generator = np.random.default_rng(3)
    left, right = (
        generator.integers(-8, 9, shape).astype(np.float16) for shape in ((m, columns), (n, k))
    )
    result = np.full((m, n), 99, np.float32)
    mfmadsl.sanitize(mfmadsl.build(schedule, "gfx950"), [left, right, result])
    wanted = left[:, place(np.arange(k))].astype(np.float64) @ right.astype(np.float64).T
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("m", [1, 16])
def test_tiles_with_fewer_chunks_than_threads_go_straight_into_the_lds(m: int) -> None:
    """16 rows of 128 bytes for 256 threads: half of them load what lies past the end."""
    tiling = Tiling((16, 64), 64, (1, 4), "mfma_f32_16x16x32_f16", 1, stages=4)
    kernel = run(Workload(m, 128, 640), tiling, "gfx950")
    assert "ds_write" not in kernel.assembly


def test_sums_lie_where_a_tile_was() -> None:
    """Unless a workgroup comes back to it for another tile of C."""
    tiles = (32 + 32) * 256 * 2
    assert run(Workload(30, 70, 600), SMALL).lds_bytes == tiles
    persistent = run(Workload(32 * 20, 32 * 16, 600), replace(SMALL, persistent=True))
    assert persistent.lds_bytes == tiles + 4 * 32 * 32 * 4
