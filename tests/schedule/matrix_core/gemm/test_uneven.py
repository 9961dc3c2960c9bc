"""Tiles that are no powers of two: right under the sanitizer, and as fast in kind as others are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tvm import te

import mfmadsl
from mfmadsl.schedule import ScheduleError, Tiling, gemm_schedule
from tests.schedule.matrix_core.gemm.test_edges import is_right, plain, product
from tests.schedule.matrix_core.gemm.workloads import FP8, Workload, with_epilogue

F16 = {16: "mfma_f32_16x16x16_f16", 32: "mfma_f32_32x32x8_f16"}
G16 = {16: "mfma_f32_16x16x32_f16", 32: "mfma_f32_32x32x16_f16"}
I8 = {16: "mfma_i32_16x16x32_i8", 32: "mfma_i32_32x32x16_i8"}
LARGE = Tiling((256, 224), 64, (8, 1), F16[32], 2)
WIDE = Tiling((160, 320), 64, (2, 2), G16[16], 1, stages=2)
SMALL = Tiling((48, 80), 64, (1, 1), F16[16], 2)


def kernel_of(workload: Workload, arch: str, tiling: Tiling) -> mfmadsl.Kernel:
    kernel = mfmadsl.build(gemm_schedule(workload.function(), arch=arch, tiling=tiling), arch)
    assert not kernel.remarks  # the pipeline took the loop
    return kernel


def check(workload: Workload, arch: str, tiling: Tiling) -> mfmadsl.Kernel:
    kernel = kernel_of(workload, arch, tiling)
    a, b, c = workload.operands()
    mfmadsl.sanitize(kernel, [a, b, c])
    assert workload.error(a, b, c) <= (0 if c.dtype.kind == "i" else 1)
    return kernel


def large(arch: str, kind: str) -> Tiling:
    """A tile of the default choice for elements of a type."""
    fp8 = "mfma_f32_32x32x16_fp8_fp8"
    of_kind = {
        "float16": (LARGE, F16[32], 64), "bfloat16": (LARGE, "mfma_f32_32x32x8_bf16", 64),
        "int8": (LARGE, I8[32], 128), "float8_e4m3fnuz": (LARGE, fp8, 128),
    } if arch == "gfx942" else {
        "float16": (WIDE, G16[16], 64), "bfloat16": (WIDE, "mfma_f32_16x16x32_bf16", 64),
        "int8": (WIDE, "mfma_i32_16x16x64_i8", 128),
    }  # fmt: skip
    tiling, instruction, k_step = of_kind[kind]
    return replace(tiling, instruction=instruction, k_step=k_step)


KINDS = [("gfx942", "float16"), ("gfx942", "bfloat16"), ("gfx942", "int8"),
         ("gfx942", FP8["gfx942"]), ("gfx950", "float16"), ("gfx950", "bfloat16"),
         ("gfx950", "int8")]  # fmt: skip


@pytest.mark.parametrize(("arch", "kind"), KINDS)
@pytest.mark.parametrize("b_rows", [True, False])
def test_large_tiles_keep_all_that_makes_them_fast(arch: str, kind: str, b_rows: bool) -> None:
    tiling = large(arch, kind)
    depth = 8 * tiling.k_step
    workload = Workload(*tiling.block, depth, kind, kind, b_rows=b_rows)
    kernel = check(workload, arch, tiling)
    assert kernel.registers.spilled == kernel.registers.scratch_bytes == 0
    profile = mfmadsl.profile(kernel, list(workload.operands()))
    assert profile.loop is not None
    assert profile.loop.lds_conflict_cycles == 0
    assert profile.loop.instructions.get("branch") == 1


@pytest.mark.parametrize("a_rows", [True, False])
@pytest.mark.parametrize("b_rows", [True, False])
@pytest.mark.parametrize(
    ("arch", "tiling"),
    [
        ("gfx942", LARGE), ("gfx942", replace(LARGE, block=(256, 176), instruction=F16[16])),
        ("gfx950", WIDE), ("gfx950", replace(WIDE, block=(224, 224), stages=1)),
        ("gfx90a", replace(LARGE, block=(192, 96), waves=(2, 1))), ("gfx942", SMALL),
        ("gfx908", SMALL), ("gfx950", replace(SMALL, instruction=G16[16], k_pack=1, stages=2)),
    ],
    ids=lambda value: value if isinstance(value, str) else "x".join(map(str, value.block)),
)  # fmt: skip
def test_every_order_with_edges(arch: str, tiling: Tiling, a_rows: bool, b_rows: bool) -> None:
    rows, columns = (side + 13 for side in tiling.block)
    check(Workload(rows, columns, 200, a_rows=a_rows, b_rows=b_rows), arch, tiling)


@pytest.mark.parametrize(
    ("kind", "tiling"),
    [
        ("int8", Tiling((80, 48), 128, (1, 1), I8[16], 2)),
        ("int8", Tiling((96, 160), 128, (1, 1), I8[32], 2, swizzle=False)),
        ("float32", Tiling((96, 112), 32, (2, 1), "mfma_f32_16x16x4_f32", 4)),
        ("float64", Tiling((48, 112), 16, (1, 1), "mfma_f64_16x16x4_f64", 2)),
        ("bfloat16", Tiling((80, 176), 32, (1, 1), "mfma_f32_16x16x16_bf16", 1)),
    ],
    ids=str,
)
@pytest.mark.parametrize("b_rows", [True, False])
def test_other_types(kind: str, tiling: Tiling, b_rows: bool) -> None:
    workload = Workload(tiling.block[0] + 1, 2 * tiling.block[1], 150, kind, kind, b_rows=b_rows)
    check(workload, "gfx942", tiling)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize(
    "change",
    [{"split_k": 3}, {"persistent": True, "group": 3}, {"swizzle": False}, {"block": (240, 16)},
     {"block": (16, 208)}],
    ids=str,
)  # fmt: skip
def test_other_fields(arch: str, change: dict[str, Any]) -> None:
    check(Workload(100, 170, 460), arch, replace(SMALL, **change))


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("m", [1, 47, 100])
def test_an_extent_known_at_the_launch(arch: str, m: int) -> None:
    assert is_right(plain(te.var("m"), 170, 200), arch, SMALL, m=m)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("n", [1, 79, 100])
def test_rows_known_at_the_launch_that_are_turned(arch: str, n: int) -> None:
    columns = te.var("n")
    function = product(
        (50, 200), (200, columns), (50, columns), 200, "int8",
        lambda x, i, j, r: x[i, r], lambda x, i, j, r: x[r, j],
    )  # fmt: skip
    tiling = Tiling((48, 80), 128, (1, 1), I8[16], 2)
    assert is_right(function, arch, tiling, n=n)


@pytest.mark.parametrize("n", [33, 34, 40, 65])
def test_rows_that_end_within_what_a_thread_copies(n: int) -> None:
    """A thread has two parts of a row, and past the end of one lies the start of the next row."""
    tiling = Tiling((32, 96), 32, (1, 1), "mfma_f32_32x32x2_f32", 4)
    check(Workload(5, n, 65, "float32", "float32", b_rows=False), "gfx942", tiling)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_batches_and_what_follows(arch: str) -> None:
    workload = Workload(100, 170, 200)

    def stage(c: Any, bias: Any, residual: Any) -> Any:
        return te.compute(c.shape, lambda i, j: c[i, j] * 0.5 + bias[j] + residual[i, j], name="D")

    function = with_epilogue(
        workload, stage, {"bias": ((170,), "float32"), "residual": ((100, 170), "float32")}
    )
    kernel = mfmadsl.build(gemm_schedule(function, arch=arch, tiling=SMALL), arch)
    a, b, _ = workload.operands()
    generator = np.random.default_rng(1)
    bias = generator.standard_normal(170).astype("float32")
    residual = generator.standard_normal((100, 170)).astype("float32")
    d = np.zeros((100, 170), "float32")
    mfmadsl.sanitize(kernel, [a, b, bias, residual, d])
    wanted = a.astype("float64") @ b.T.astype("float64") * 0.5 + bias + residual
    np.testing.assert_allclose(d, wanted, atol=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block": (256, 232)}, "232 of N for 1 waves are no whole tiles of mfma_f32_32x32x8_f16"),
        ({"block": (256, 224), "waves": (2, 4)}, "a wave takes a multiple of 32"),
        ({"block": (256, 288)}, "69632 bytes of LDS, more than the 65536 of gfx942"),
        ({"block": (224, 224), "waves": (1, 1)}, "registers a lane, more than the 512"),
        ({"block": (0, 224)}, "block: 0 is no positive number"),
        ({"block": (-32, 224)}, "block: -32 is no positive number"),
        ({"waves": (6, 1)}, "waves: 6 is no power of two"),
        ({"k_step": 96}, "k_step: 96 is no power of two"),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_made_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        gemm_schedule(Workload(4096, 4096, 4096).function(), tiling=replace(LARGE, **change))
    assert message in str(caught.value)
