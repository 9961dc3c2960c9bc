"""What is recognized as a GEMM, and what is said of everything else."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tvm import te
from tvm.s_tir import Schedule

import mfmadsl
from mfmadsl.backend import build
from mfmadsl.error import ArgumentError, ArgumentTypeError, MfmadslError
from mfmadsl.schedule import ScheduleError, gemm_schedule, gemm_tiling, matmul
from mfmadsl.tvm_refusal import tvm_refusal
from tests.fuzz.workloads import convolution, odd_workloads
from tests.schedule.matrix_core.gemm.workloads import Workload, random


def f32(x: Any) -> Any:
    return x.astype("float32")


def test_a_program_of_relax_is_no_kernel() -> None:
    program, legal, empty, *_ = odd_workloads()
    for function in (gemm_schedule, build):
        with pytest.raises(MfmadslError, match=r"module of Relax.*`main`.*LegalizeOps makes them"):
            function(program)
        with pytest.raises(MfmadslError, match="of its PrimFuncs, give one: matmul"):
            function(legal)
        with pytest.raises(MfmadslError, match="no function `main`, but none"):
            function(empty)


@pytest.mark.parametrize("workload", [None, 5, "matmul", {}])
def test_what_is_no_workload(workload: Any) -> None:
    for function in (gemm_schedule, gemm_tiling, build):
        with pytest.raises(ArgumentTypeError, match="is a PrimFunc or an IRModule of PrimFuncs"):
            function(workload)


def test_what_tvm_refuses_is_told_in_a_line() -> None:
    schedule = Schedule(matmul(16, 16, 16, "float16", "float32"))
    (loop, *_) = schedule.get_loops(schedule.get_sblock("C"))
    refused = pytest.raises(ScheduleError, match=r"workload: TVM refuses it: [^\n]+$")
    with refused as caught, tvm_refusal("workload", ScheduleError):
        schedule.split(loop, factors=[3, 3])
    assert "product of factors" in str(caught.value)
    with pytest.raises(KeyError), tvm_refusal("workload", ScheduleError):
        raise KeyError("a mistake of ours stays one")


@pytest.mark.parametrize(
    ("extents", "having"),
    [((2**31 - 1, 1, 1), "AC"), ((1, 2**31 - 1, 1), "BC"), ((1, 1, 2**31 - 1), "AB")],
)
def test_extents_that_loops_do_not_count_in_whole_tiles(
    extents: tuple[int, int, int], having: str
) -> None:
    told = f"an extent of `{having[0]}` and `{having[1]}` is 2147483647, which whole tiles of"
    with pytest.raises(ScheduleError, match=rf"workload: {told} \d+ make 2147483648, and loops "):
        gemm_schedule(matmul(*extents, "float16", "float32"))
    m, n, k = (max(extent - 4095, 1) for extent in extents)
    if k == 1:
        assert build(gemm_schedule(matmul(m, n, k, "float16", "float32", True))).remarks == ()


def error(*tensors: Any) -> str:
    with pytest.raises(ScheduleError) as caught:
        gemm_schedule(te.create_prim_func(list(tensors)))
    return str(caught.value)


def test_no_product() -> None:
    a = te.placeholder((8, 16), name="A", dtype="float32")
    assert "one block must be a reduction, the matrix product; there are: none" in error(
        a, te.compute((8, 16), lambda i, j: a[i, j] + 1, name="B")
    )
    r = te.reduce_axis((0, 16), name="k")
    assert "block `total` adds `A[v_i, v_k]`, which is no product of two elements" in error(
        a, te.compute((8,), lambda i: te.sum(a[i, r], axis=[r]), name="total")
    )


def run(function: Any, *arrays: Any) -> None:
    mfmadsl.sanitize(build(gemm_schedule(function)), list(arrays))


def test_a_convolution_is_a_product() -> None:
    generator = np.random.default_rng(3)
    x = random((1, 32, 32, 16), "float16", generator)
    w = random((3, 4, 16, 32), "float16", generator)
    result = np.zeros((1, 29, 29, 32), np.float32)
    run(convolution(), x, w, result)
    windows = np.lib.stride_tricks.sliding_window_view(x[0].astype(np.float64), (3, 4), (0, 1))
    expected = np.einsum("ijchv,hvco->ijo", windows, w.astype(np.float64))
    np.testing.assert_allclose(result[0], expected[:29], atol=1e-3)


def test_what_comes_before_the_product_is_computed_on_the_way() -> None:
    """A weight of eight bits that is scaled by its row."""
    a = te.placeholder((40, 48), name="A", dtype="float16")
    w = te.placeholder((24, 48), name="W", dtype="int8")
    scale = te.placeholder((24,), name="scale", dtype="float16")
    b = te.compute((24, 48), lambda j, k: w[j, k].astype("float16") * scale[j], name="B")
    r = te.reduce_axis((0, 48), name="k")
    c = te.compute((40, 24), lambda i, j: te.sum(f32(a[i, r]) * f32(b[j, r]), axis=[r]), name="C")
    generator = np.random.default_rng(4)
    left, scales = random((40, 48), "float16", generator), random((24,), "float16", generator)
    weights = generator.integers(-8, 8, (24, 48), np.int8)
    result = np.zeros((40, 24), np.float32)
    run(te.create_prim_func([a, w, scale, c]), left, weights, scales, result)
    right = (weights.astype(np.float16) * scales[:, None]).astype(np.float64)
    np.testing.assert_allclose(result, left.astype(np.float64) @ right.T, atol=1e-3)


def test_two_results() -> None:
    a = te.placeholder((16, 16), name="A", dtype="float16")
    r = te.reduce_axis((0, 16), name="k")
    c = te.compute((16, 16), lambda i, j: te.sum(f32(a[i, r]) * f32(a[j, r]), axis=[r]), name="C")
    d = te.compute((16, 16), lambda i, j: c[i, j] + 1.0, name="D")
    assert "`C` is a result besides `D`" in error(a, c, d)


def test_every_other_row() -> None:
    a = te.placeholder((32, 16), name="A", dtype="float16")
    b = te.placeholder((24, 16), name="B", dtype="float16")
    r = te.reduce_axis((0, 16), name="k")
    c = te.compute(
        (16, 24), lambda i, j: te.sum(f32(a[2 * i, r]) * f32(b[j, r]), axis=[r]), name="C"
    )
    generator = np.random.default_rng(5)
    left, right = random((32, 16), "float16", generator), random((24, 16), "float16", generator)
    result = np.zeros((16, 24), np.float32)
    run(te.create_prim_func([a, b, c]), left, right, result)
    expected = left[::2].astype(np.float64) @ right.T.astype(np.float64)
    np.testing.assert_allclose(result, expected, atol=1e-3)


def test_types_without_an_instruction() -> None:
    workload = Workload(16, 16, 16, "float8_e4m3fn", "float8_e4m3fn")
    with pytest.raises(ScheduleError, match=r"gfx942 has no matrix instruction for float8_e4m3fn"):
        gemm_schedule(workload.function(), arch="gfx942")


def test_an_instruction_of_other_types() -> None:
    with pytest.raises(ScheduleError, match=r"multiplies bfloat16 by bfloat16, but the workload"):
        gemm_schedule(Workload(16, 16, 16).function(), intrinsic="mfma_f32_32x32x8_bf16")


def test_an_instruction_of_another_chip() -> None:
    with pytest.raises(ScheduleError, match=r"gfx942 has no mfma_f32_32x32x16_f16"):
        gemm_schedule(Workload(16, 16, 16).function(), intrinsic="mfma_f32_32x32x16_f16")


def test_a_sparse_instruction() -> None:
    with pytest.raises(ScheduleError, match="takes a sparse A: `sparse_matmul` gives its workload"):
        gemm_schedule(Workload(16, 16, 16).function(), intrinsic="smfmac_f32_32x32x16_f16")


def test_a_tile_that_is_too_far_apart_for_the_pipeline() -> None:
    tiling = gemm_tiling(Workload(4096, 4096, 4096).function())
    kernel = build(gemm_schedule(Workload(512, 512, 1 << 23).function(), tiling=tiling))
    (remark,) = kernel.remarks
    assert re.match(r"loop `\w+` is left as it is: ", remark)


def test_a_symbolic_k() -> None:
    k = te.var("k")
    a = te.placeholder((40, k), name="A", dtype="float16")
    b = te.placeholder((k, 24), name="B", dtype="float16")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((40, 24), lambda i, j: te.sum(f32(a[i, r]) * f32(b[r, j]), axis=[r]), name="C")
    kernel = build(gemm_schedule(te.create_prim_func([a, b, c])))
    assert not kernel.remarks
    huge = 1 << 30
    arrays = [np.lib.stride_tricks.as_strided(np.zeros(1, "f2"), shape, (0, 0))
              for shape in ((40, huge), (huge, 24))]  # fmt: skip
    with pytest.raises(ArgumentError, match=r"argument A: a tile spans \d+ bytes"):
        kernel.launches([*arrays, np.zeros((40, 24), np.float32)])
    generator = np.random.default_rng(6)
    for extent in (1, 63, 64, 65, 200, 255):
        left = random((40, extent), "float16", generator)
        right = random((extent, 24), "float16", generator)
        result = np.zeros((40, 24), np.float32)
        mfmadsl.sanitize(kernel, [left, right, result])
        expected = left.astype(np.float64) @ right.astype(np.float64)
        np.testing.assert_allclose(result, expected, atol=1e-3)


def test_a_times_its_transpose() -> None:
    a = te.placeholder((40, 48), name="A", dtype="float16")
    r = te.reduce_axis((0, 48), name="r")
    c = te.compute((40, 40), lambda i, j: te.sum(f32(a[i, r]) * f32(a[j, r]), axis=[r]), name="C")
    left, result = random((40, 48), "float16", np.random.default_rng(7)), np.zeros((40, 40), "f4")
    run(te.create_prim_func([a, c]), left, result)
    np.testing.assert_allclose(
        result, left.astype(np.float64) @ left.T.astype(np.float64), atol=1e-3
    )
