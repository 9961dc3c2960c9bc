"""`narrow_types` in whole kernels: vectors, variables, reductions, matrix cores."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import te
from tvm.s_tir import Schedule
from tvm.script import tirx as T  # noqa: N812
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.language import find
from mfmadsl.model.numpy_type import numpy_type
from mfmadsl.passes import narrow_types
from mfmadsl.schedule import load_intrinsic
from tests.passes.kernels import assert_same, cast, schedule
from tests.schedule.simple import simple_schedule


def test_a_vector_that_is_computed_is_refused() -> None:
    @T.prim_func(s_tir=True)  # type: ignore[untyped-decorator]
    def doubled(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (256,), "bfloat16")  # noqa: N806
        B = T.match_buffer(b, (256,), "bfloat16")  # noqa: N806
        for i in T.thread_binding(64, thread="threadIdx.x"):
            B[T.ramp(i * 4, 1, 4)] = A[T.ramp(i * 4, 1, 4)] + A[T.ramp(i * 4, 1, 4)]

    with pytest.raises(mfmadsl.LoweringError, match="stored in `B`: a vector of 4 bfloat16"):
        mfmadsl.build(doubled)


def test_vectors_that_are_moved_and_variables_of_statements() -> None:
    @T.prim_func(s_tir=True)  # type: ignore[untyped-decorator]
    def clipped(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (256,), "bfloat16")  # noqa: N806
        B = T.match_buffer(b, (256,), "bfloat16")  # noqa: N806
        for i in T.thread_binding(64, thread="threadIdx.x"):
            half = T.alloc_buffer((4,), "bfloat16", scope="local")
            mine = T.alloc_buffer((4,), "bfloat16", scope="local")
            mine[T.ramp(0, 1, 4)] = A[T.ramp(i * 4, 1, 4)]
            for j in T.vectorized(4):
                half[j] = T.bfloat16(0.5)
            for j in T.vectorized(4):
                x = mine[j] * half[j]
                B[i * 4 + j] = T.if_then_else(x > T.bfloat16(0), x + x, T.bfloat16(-1))

    x = np.random.default_rng(4).standard_normal(256).astype(numpy_type("bfloat16"))
    result = np.zeros_like(x)
    mfmadsl.emulate(mfmadsl.build(clipped), [x, result])
    assert_same(result, np.where(x.astype(np.float32) > 0, x, np.asarray(-1, x.dtype)))


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fnuz"])
@pytest.mark.parametrize("threads", [64, 256])
def test_threads_reduce_narrow_values(name: str, threads: int) -> None:
    a = te.placeholder((8, 1024), name="a", dtype=name)
    k = te.reduce_axis((0, 1024), name="k")
    largest = te.compute((8,), lambda i: te.max(a[i, k], axis=[k]), name="largest")
    sch = Schedule(te.create_prim_func([a, largest]))
    row, column = sch.get_loops(sch.get_sblock("largest"))
    sch.bind(row, "blockIdx.x")
    sch.bind(sch.split(column, [None, threads])[1], "threadIdx.x")
    x = np.random.default_rng(5).standard_normal((8, 1024)).astype(numpy_type(name))
    result = np.zeros(8, x.dtype)
    mfmadsl.emulate(mfmadsl.build(sch, "gfx942"), [x, result])
    np.testing.assert_array_equal(result.astype(np.float32), x.astype(np.float32).max(axis=1))


def biased(name: str, bias: str) -> Schedule:
    """A user's product by matrix cores, and a bias of a narrow type after it."""
    tile = load_intrinsic(find(name))
    m = n = k = 64
    a = te.placeholder((m, k), name="A", dtype=tile.IN_DTYPE)
    b = te.placeholder((k, n), name="B", dtype=tile.IN_DTYPE)
    e = te.placeholder((n,), name="E", dtype=bias)
    r = te.reduce_axis((0, k), name="k")
    out = tile.OUT_DTYPE
    c = te.compute(
        (m, n), lambda i, j: te.sum(a[i, r].astype(out) * b[r, j].astype(out), axis=[r]), name="C"
    )
    d = te.compute((m, n), lambda i, j: (c[i, j] + e[j].astype(out)).astype(bias), name="D")
    workload = te.create_prim_func([a, b, e, d])
    sch = simple_schedule(workload, tile, [1, 1, 2, 2, 1], [1, 1, 2, 2, 1], [None, 1, 1])
    row, column = sch.get_loops(sch.get_sblock("D"))
    sch.bind(row, "blockIdx.x")
    sch.bind(column, "threadIdx.x")
    return sch


@pytest.mark.parametrize(
    ("instruction", "bias", "arch"),
    [
        ("mfma_f32_16x16x16_f16", "bfloat16", "gfx942"),
        ("mfma_f32_16x16x16_f16", "float8_e4m3fnuz", "gfx942"),
        ("mfma_f32_16x16x16_bf16", "bfloat16", "gfx90a"),
        ("mfma_f32_16x16x32_fp8_fp8", "float8_e5m2fnuz", "gfx942"),
    ],
)
def test_a_narrow_bias_after_matrix_cores(instruction: str, bias: str, arch: str) -> None:
    kernels = mfmadsl.build(biased(instruction, bias), arch)
    generator = np.random.default_rng(6)
    dtype = find(instruction).a.type.name
    a, b = (generator.integers(-2, 3, (64, 64)).astype(numpy_type(dtype)) for _ in range(2))
    e = generator.standard_normal(64).astype(numpy_type(bias))
    result = np.zeros((64, 64), e.dtype)
    assert not mfmadsl.sanitize(kernels, [a, b, e, result]).faults
    wide = [x.astype(np.float32) for x in (a, b, e)]
    assert_same(result, cast(wide[0] @ wide[1] + wide[2], bias))


def test_a_kernel_that_computes_with_none_of_them_is_left_as_it_is() -> None:
    function: PrimFunc = schedule(lambda x: x, [("bfloat16", 256)]).mod["main"]
    assert narrow_types(function).body.same_as(function.body)
