"""What is recognized as a GEMM, and what is said of everything else."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import te
from tvm.s_tir import Schedule

from mfmadsl.error import ArgumentTypeError, MfmadslError
from mfmadsl.schedule import ScheduleError, gemm_schedule, gemm_tiling, matmul
from mfmadsl.target import build
from mfmadsl.tvm_refusal import tvm_refusal
from tests.fuzz.workloads import odd_workloads
from tests.schedule.gemm.workloads import Workload


def f32(x: Any) -> Any:
    return x.astype("float32")


def test_a_convolution_is_told_what_to_do() -> None:
    with pytest.raises(ScheduleError, match=r"indexes `X` with `v_\w+ \+ v_\w+`.*im2col"):
        gemm_schedule(odd_workloads()[3])


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
    assert "block `total` does not add a product of two elements" in error(
        a, te.compute((8,), lambda i: te.sum(a[i, r], axis=[r]), name="total")
    )


def test_what_comes_before_the_product() -> None:
    a = te.placeholder((16, 16), name="A", dtype="float16")
    doubled = te.compute((16, 16), lambda i, j: a[i, j] * 2, name="doubled")
    r = te.reduce_axis((0, 16), name="k")
    c = te.compute(
        (16, 16), lambda i, j: te.sum(f32(doubled[i, r]) * f32(a[j, r]), axis=[r]), name="C"
    )
    assert "block `doubled` comes before the product `C`" in error(a, c)


def test_two_results() -> None:
    a = te.placeholder((16, 16), name="A", dtype="float16")
    r = te.reduce_axis((0, 16), name="k")
    c = te.compute((16, 16), lambda i, j: te.sum(f32(a[i, r]) * f32(a[j, r]), axis=[r]), name="C")
    d = te.compute((16, 16), lambda i, j: c[i, j] + 1.0, name="D")
    assert "`C` is a result besides `D`" in error(a, c, d)


def test_an_index_that_is_no_loop() -> None:
    a = te.placeholder((16, 32), name="A", dtype="float16")
    r = te.reduce_axis((0, 16), name="k")
    c = te.compute(
        (8, 16), lambda i, j: te.sum(f32(a[2 * i, r]) * f32(a[j, r]), axis=[r]), name="C"
    )
    assert "indexes `A` with `v_i * 2`, which is no loop" in error(a, c)


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
    with pytest.raises(ScheduleError, match="is sparse: no GEMM is made of it"):
        gemm_schedule(Workload(16, 16, 16).function(), intrinsic="smfmac_f32_32x32x16_f16")


def test_a_tile_that_is_too_far_apart() -> None:
    workload = Workload(512, 512, 1 << 23)
    with pytest.raises(ScheduleError, match=r"lines of `[AB]`, a tile, span 2147483648 bytes"):
        gemm_schedule(
            workload.function(), tiling=gemm_tiling(Workload(4096, 4096, 4096).function())
        )


def test_a_symbolic_k() -> None:
    k = te.var("k")
    a = te.placeholder((16, k), name="A", dtype="float16")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((16, 16), lambda i, j: te.sum(f32(a[i, r]) * f32(a[j, r]), axis=[r]), name="C")
    assert "K is symbolic" in error(a, c)
