"""What follows a product is fused: any element-wise expression, at the places of C."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm import te, tirx

import mfmadsl
from mfmadsl.model.numpy_type import numpy_type
from mfmadsl.schedule import ScheduleError, Tiling, gemm_schedule
from tests.schedule.matrix_core.gemm.workloads import Workload, random, with_epilogue

SHAPE = Workload(60, 72, 96)
erf = np.vectorize(math.erf)
Extra = dict[str, tuple[tuple[int, ...], str]]


def f32(x: float) -> Any:
    return tirx.const(x, "float32")


def element_wise(function: Callable[..., Any], name: str = "D") -> Callable[..., Any]:
    """A stage from a function of (C[i, j], i, j, extra...)."""

    def stage(c: Any, *extra: Any) -> Any:
        return te.compute(c.shape, lambda i, j: function(c[i, j], i, j, *extra), name=name)

    return stage


def check(
    stage: Callable[..., Any], expected: Callable[..., Any], extra: Extra | None = None,
    out: str = "float32", tolerance: float = 2e-5, arch: str = "gfx942", split: int = 1,
) -> None:  # fmt: skip
    extra = extra or {}
    tiling = Tiling((64, 64), 32, (2, 2), "mfma_f32_32x32x8_f16", 2, split_k=split)
    function = with_epilogue(SHAPE, stage, extra)
    kernel = mfmadsl.build(gemm_schedule(function, arch=arch, tiling=tiling), arch)
    generator = np.random.default_rng(5)
    a, b = (random(s, "float16", generator) for s in ((60, 96), (72, 96)))
    more = [random(shape, dtype, generator) for shape, dtype in extra.values()]
    product = a.astype(np.float64) @ b.astype(np.float64).T
    wanted = expected(product, *(x.astype(np.float64) for x in more))
    result = np.zeros(wanted.shape, numpy_type(out))
    mfmadsl.sanitize(kernel, [a, b, *more, result])
    difference = np.abs(result.astype(np.float64) - wanted)
    assert (difference <= tolerance * np.maximum(1, np.abs(wanted))).all()


HALF_UP = 2.0**-10
ROW, COLUMN, WHOLE, ONE = (72,), (60,), (60, 72), (1,)


@pytest.mark.parametrize("split", [1, 3])
def test_bias_and_relu(split: int) -> None:
    check(
        element_wise(lambda c, i, j, bias: tirx.max(c + bias[j].astype("float32"), f32(0)).astype(
            "float16")),
        lambda c, bias: np.maximum(c + bias, 0), {"bias": (ROW, "float16")}, "float16", HALF_UP,
        split=split,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "at"),
    [(ONE, lambda i, j: (0,)), (COLUMN, lambda i, j: (i,)), (ROW, lambda i, j: (j,))],
    ids=["tensor", "row", "column"],
)
def test_scales(shape: tuple[int, ...], at: Callable[..., Any]) -> None:
    def expected(c: Any, scale: Any) -> Any:
        return c * (scale[:, None] if shape == COLUMN else scale)

    check(element_wise(lambda c, i, j, s: c * s[at(i, j)]), expected, {"s": (shape, "float32")})


def test_add_a_matrix() -> None:
    check(element_wise(lambda c, i, j, d: c + d[i, j] * f32(0.5)), lambda c, d: c + 0.5 * d,
          {"d": (WHOLE, "float32")})  # fmt: skip


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x * tirx.sigmoid(x), lambda x: x / (1 + np.exp(-x))),
        (lambda x: x * f32(0.5) * (f32(1) + tirx.erf(x * f32(2**-0.5))),
         lambda x: x * 0.5 * (1 + erf(x * 2**-0.5))),
        (lambda x: tirx.tanh(x * f32(0.1)), lambda x: np.tanh(x * 0.1)),
        (lambda x: tirx.min(tirx.max(x, f32(0)), f32(6)), lambda x: np.clip(x, 0, 6)),
        (lambda x: tirx.exp(x * f32(0.1)), lambda x: np.exp(x * 0.1)),
        (lambda x: tirx.log(x * x + f32(1)), lambda x: np.log(x * x + 1)),
        (lambda x: tirx.rsqrt(x * x + f32(1)), lambda x: 1 / np.sqrt(x * x + 1)),
        (lambda x: tirx.sqrt(tirx.abs(x)), lambda x: np.sqrt(np.abs(x))),
        (lambda x: tirx.power(x, f32(3)) * f32(0.01), lambda x: x**3 * 0.01),
        (lambda x: tirx.Select(x > f32(0), x, x * f32(0.1)), lambda x: np.where(x > 0, x, x * 0.1)),
        (lambda x: tirx.if_then_else(x < f32(0), f32(0), x), lambda x: np.maximum(x, 0)),
    ],
    ids=["silu", "gelu", "tanh", "clip", "exp", "log", "rsqrt", "sqrt", "power", "leaky", "where"],
)  # fmt: skip
def test_functions(function: Callable[..., Any], expected: Callable[..., Any]) -> None:
    check(element_wise(lambda c, i, j: function(c)), expected)


@pytest.mark.parametrize(
    ("dtype", "arch", "tolerance"),
    [("float16", "gfx942", HALF_UP), ("bfloat16", "gfx942", 2**-8), ("bfloat16", "gfx950", 2**-8),
     ("float8_e4m3fnuz", "gfx942", 2**-4), ("float8_e4m3fn", "gfx950", 2**-4),
     ("float8_e5m2fnuz", "gfx942", 2**-3), ("int32", "gfx942", 1.1), ("int8", "gfx942", 1.1),
     ("float64", "gfx942", 2e-5)],
)  # fmt: skip
def test_casts_of_the_output(dtype: str, arch: str, tolerance: float) -> None:
    check(element_wise(lambda c, i, j: (c * f32(0.5)).astype(dtype)), lambda c: 0.5 * c,
          out=dtype, tolerance=tolerance, arch=arch)  # fmt: skip


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fnuz", "float8_e5m2fnuz", "float16"])
def test_narrow_operands(dtype: str) -> None:
    check(element_wise(lambda c, i, j, bias: c + bias[j].astype("float32")),
          lambda c, bias: c + bias, {"bias": (ROW, dtype)})  # fmt: skip


def test_arithmetic_in_a_narrow_type_rounds_as_often_as_it_says() -> None:
    def stage(c: Any, bias: Any) -> Any:
        d = te.compute(c.shape, lambda i, j: c[i, j].astype("bfloat16"), name="D")
        return te.compute(c.shape, lambda i, j: d[i, j] + bias[j], name="E")

    bfloat = numpy_type("bfloat16")
    check(
        stage,
        lambda c, bias: (
            c.astype(bfloat).astype(np.float32) + bias.astype(np.float32)
        ).astype(bfloat).astype(np.float64),
        {"bias": (ROW, "bfloat16")}, "bfloat16", 2**-7,
    )  # fmt: skip


def test_a_chain_of_stages_that_ends_in_columns() -> None:
    def stage(c: Any, bias: Any) -> Any:
        d = te.compute(c.shape, lambda i, j: c[i, j] + bias[j], name="D")
        e = te.compute(c.shape, lambda i, j: tirx.max(d[i, j], f32(0)) + c[i, j], name="E")
        return te.compute((72, 60), lambda j, i: e[i, j] * f32(2), name="F")

    check(stage, lambda c, bias: (2 * (np.maximum(c + bias, 0) + c)).T,
          {"bias": (ROW, "float32")})  # fmt: skip


def test_places_may_be_part_of_the_expression() -> None:
    check(
        element_wise(lambda c, i, j: tirx.Select(j <= i, c, f32(-9))),
        lambda c: np.where(np.tri(60, 72, dtype=bool), c, -9),
    )


@pytest.mark.parametrize("split", [1, 3])
def test_what_reads_other_places_is_a_kernel_of_its_own(split: int) -> None:
    def moved(c: Any) -> Any:
        return te.compute((60, 71), lambda i, j: c[i, j + 1] - c[i, j], name="shift")

    check(moved, lambda c: c[:, 1:] - c[:, :-1], split=split, tolerance=1e-4)
    kernels = list(mfmadsl.build(gemm_schedule(with_epilogue(SHAPE, moved, {}))).chain())
    assert ["mfma" in kernel.assembly for kernel in kernels] == [True, False]


def test_a_second_sum_is_refused() -> None:
    def summed(c: Any) -> Any:
        r = te.reduce_axis((0, 72), name="r")
        return te.compute((60,), lambda i: te.sum(c[i, r], axis=[r]), name="total")

    with pytest.raises(ScheduleError, match=r"one block must be a reduction.*: `C`, `total`$"):
        gemm_schedule(with_epilogue(SHAPE, summed, {}))


@pytest.mark.parametrize("name", ["atan", "tan", "cosh", "log1p"])
def test_a_function_that_no_kernel_has_is_said_with_what_is_stored(name: str) -> None:
    function = getattr(tirx, name)
    schedule = gemm_schedule(
        with_epilogue(SHAPE, element_wise(lambda c, i, j: function(c), "angle"), {})
    )
    with pytest.raises(
        mfmadsl.LoweringError, match=f"what is stored in `angle`: `{name}` of float32 is none of"
    ):
        mfmadsl.build(schedule)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("n", [65, 66, 67, 68])
def test_bytes_in_rows_of_any_length(n: int, dtype: str) -> None:
    """Requantised sums, rounded to even as TVM rounds them on a CPU."""
    m, k = 20, 32
    x, y = (te.placeholder((e, k), "int8", name=name) for e, name in ((m, "x"), (n, "y")))
    scale = te.placeholder((n,), "float32", name="scale")
    r = te.reduce_axis((0, k), name="r")
    total = te.compute(
        (m, n),
        lambda i, j: te.sum(x[i, r].astype("int32") * y[j, r].astype("int32"), axis=[r]),
        name="total",
    )
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max

    def narrowed(i: Any, j: Any) -> Any:
        value = te.round(total[i, j].astype("float32") * scale[j])
        limited = te.max(te.min(value, tirx.const(high, "float32")), tirx.const(low, "float32"))
        return limited.astype(dtype)

    out = te.compute((m, n), narrowed, name="out")
    kernel = mfmadsl.build(gemm_schedule(te.create_prim_func([x, y, scale, out])))
    generator = np.random.default_rng(n)
    a, b = (generator.integers(-8, 8, (e, k), np.int8) for e in (m, n))
    scales = np.full(n, 0.5, np.float32)  # half of the sums are halves
    found = np.zeros((m, n), dtype)
    mfmadsl.emulate(kernel, [a, b, scales, found])
    expected = np.round((a.astype(np.int64) @ b.T.astype(np.int64)) * 0.5).clip(low, high)
    assert (found == expected).all()


def test_operands_that_are_computed_first() -> None:
    """A bias that is cast and scaled in blocks of its own, as TVM's operators do it."""
    workload = Workload(65, 33, 67)

    def stage(c: Any, bias: Any) -> Any:
        wide = te.compute((33,), lambda j: bias[j].astype("float32"), name="wide")
        twice = te.compute((33,), lambda j: wide[j] * tirx.const(2.0, "float32"), name="twice")
        return te.compute((65, 33), lambda i, j: c[i, j] + twice[j], name="D")

    function = with_epilogue(workload, stage, {"bias": ((33,), "float16")})
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(function))
    assert kernel.next is None
    a, b, c = workload.operands()
    bias = np.arange(33, dtype=np.float16)
    mfmadsl.emulate(kernel, [a, b, bias, c])
    assert workload.error(a, b, c - 2 * bias.astype(np.float32)) <= 40
