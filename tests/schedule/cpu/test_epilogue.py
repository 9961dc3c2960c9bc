"""What follows and what precedes a product: in its loops, in loops of its own, or refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from tvm import s_tir, te, tirx

import mfmadsl
from mfmadsl.model.numpy_type import numpy_type
from mfmadsl.schedule import ScheduleError
from tests.cases import drawn
from tests.schedule.cpu.workloads import F32, Array, needs_bytes, positions, tiling_of

M, N, K = 37, 45, 29
"""No multiple of any tile: each has edges along both sides of C."""

erf = np.vectorize(math.erf)
Extra = dict[str, tuple[tuple[int, ...], str]]
Stage = Callable[..., Any]
TILINGS = {
    "default": None,
    "threads": tiling_of(F32, 2, 1, parallel=True),
    "packed": tiling_of(F32, 3, 2, pack_a=True),
}


def f32(x: float) -> Any:
    return tirx.const(x, "float32")


def multiplied(a: Any, b: Any, out: str = "float32") -> Any:
    """C[i, j] = sum of A[i, k] * B[j, k]."""
    r = te.reduce_axis((0, K), name="k")
    return te.compute(
        (M, N), lambda i, j: te.sum(a[i, r].astype(out) * b[j, r].astype(out), axis=[r]), name="C"
    )


def workload(
    after: Stage = lambda c: c, before_a: Stage | None = None, before_b: Stage | None = None,
    extra: Extra | None = None, a: tuple[tuple[int, ...], str] = ((M, K), "float32"),
    b: tuple[tuple[int, ...], str] = ((N, K), "float32"), out: str = "float32",
) -> Any:  # fmt: skip
    """A product with stages around it; those get the further arguments, too."""
    left, right = (te.placeholder(x[0], x[1], name=n) for x, n in ((a, "A"), (b, "B")))
    more = [te.placeholder(s, dtype, name=name) for name, (s, dtype) in (extra or {}).items()]
    x = before_a(left, *more) if before_a else left
    y = before_b(right, *more) if before_b else right
    last = after(multiplied(x, y, out), *(more if not before_a and not before_b else []))
    return te.create_prim_func([left, right, *more, *(last if isinstance(last, list) else [last])])


def element_wise(function: Stage, name: str = "D") -> Stage:
    """A stage from a function of (C[i, j], i, j, extra...)."""

    def stage(c: Any, *extra: Any) -> Any:
        return te.compute(c.shape, lambda i, j: function(c[i, j], i, j, *extra), name=name)

    return stage


def ran(
    function: Any, inputs: list[Array], shape: tuple[int, ...], out: str = "float32",
    tiling: mfmadsl.CpuTiling | None = None,
) -> Array:  # fmt: skip
    result = np.full(shape, 77, numpy_type(out))
    mfmadsl.build_for_cpu(mfmadsl.cpu_gemm_schedule(function, tiling=tiling))(*inputs, result)
    return result


def values(shape: tuple[int, ...], dtype: str) -> Array:
    """Small numbers that name their places."""
    return (positions(shape, dtype) / 64).astype(numpy_type(dtype))


A, B = values((M, K), "float32"), values((N, K), "float32")[::-1].copy()
P = A.astype(np.float64) @ B.T.astype(np.float64)


def close(result: Array, wanted: Array, tolerance: float = 1e-5) -> None:
    assert result.shape == wanted.shape
    away = np.abs(result.astype(np.float64) - wanted)
    assert (away <= tolerance * np.maximum(1, np.abs(wanted))).all(), away.max()


def check(
    after: Stage, expected: Callable[..., Array], extra: Extra | None = None,
    out: str = "float32", tolerance: float = 1e-4, tiling: mfmadsl.CpuTiling | None = None,
) -> None:  # fmt: skip
    more = [values(shape, dtype) for shape, dtype in (extra or {}).values()]
    wanted = expected(P, *(x.astype(np.float64) for x in more))
    function = workload(after, extra=extra)
    close(ran(function, [A, B, *more], wanted.shape, out, tiling), wanted, tolerance)


@pytest.mark.parametrize("tiling", TILINGS)
def test_bias_and_relu(tiling: str) -> None:
    check(
        element_wise(lambda c, i, j, bias: tirx.max(c + bias[j], f32(0))),
        lambda c, bias: np.maximum(c + bias, 0), {"bias": ((N,), "float32")},
        tiling=TILINGS[tiling],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "at"),
    [((1,), lambda i, j: (0,)), ((M,), lambda i, j: (i,)), ((N,), lambda i, j: (j,)),
     ((M, N), lambda i, j: (i, j))],
    ids=["tensor", "row", "column", "matrix"],
)  # fmt: skip
def test_scales_and_residuals(shape: tuple[int, ...], at: Stage) -> None:
    def expected(c: Array, scale: Array) -> Array:
        return c * (scale[:, None] if shape == (M,) else scale) + c

    check(element_wise(lambda c, i, j, s: c * s[at(i, j)] + c), expected, {"s": (shape, "float32")})


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x * f32(0.5) * (f32(1) + tirx.erf(x * f32(2**-0.5))),
         lambda x: x * 0.5 * (1 + erf(x * 2**-0.5))),
        (lambda x: x * tirx.sigmoid(x), lambda x: x / (1 + np.exp(-x))),
        (lambda x: tirx.exp(x * f32(0.01)), lambda x: np.exp(x * 0.01)),
        (lambda x: tirx.tanh(x * f32(0.1)), lambda x: np.tanh(x * 0.1)),
        (lambda x: tirx.sqrt(tirx.abs(x)), lambda x: np.sqrt(np.abs(x))),
        (lambda x: tirx.Select(x > f32(0), x, x * f32(0.1)), lambda x: np.where(x > 0, x, x * 0.1)),
        (lambda x: tirx.if_then_else(x < f32(0), f32(0), x), lambda x: np.maximum(x, 0)),
    ],
    ids=["gelu", "silu", "exp", "tanh", "sqrt", "leaky", "where"],
)  # fmt: skip
def test_functions(function: Stage, expected: Callable[[Array], Array]) -> None:
    check(element_wise(lambda c, i, j: function(c)), expected, tolerance=1e-3)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [("float16", 2**-10), ("bfloat16", 2**-8), ("float64", 1e-4), ("int32", 1.1), ("int8", 1.1)],
)
def test_casts_of_the_result(dtype: str, tolerance: float) -> None:
    check(element_wise(lambda c, i, j: (c * f32(0.1)).astype(dtype)), lambda c: c * 0.1,
          out=dtype, tolerance=tolerance)  # fmt: skip


def test_places_may_be_part_of_the_expression() -> None:
    check(
        element_wise(lambda c, i, j: tirx.Select(j <= i, c, f32(-9))),
        lambda c: np.where(np.tri(M, N, dtype=bool), c, -9),
    )


BIASED: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Array, Array], Array]]] = {
    "two blocks": (
        lambda c, d: te.compute((M, N), lambda i, j: tirx.max(d[i, j], f32(0)), name="E"),
        lambda c, d: np.maximum(d, 0)),
    "a result used twice": (
        lambda c, d: te.compute((M, N), lambda i, j: tirx.max(d[i, j], f32(0)) + c[i, j], name="E"),
        lambda c, d: np.maximum(d, 0) + c),
    "turned": (
        lambda c, d: te.compute((N, M), lambda j, i: d[i, j] * f32(2), name="E"),
        lambda c, d: 2 * d.T),
    "read at other places": (
        lambda c, d: te.compute((M, N - 1), lambda i, j: d[i, j + 1] - c[i, j], name="E"),
        lambda c, d: d[:, 1:] - c[:, :-1]),
    "mirrored": (
        lambda c, d: te.compute((M, N), lambda i, j: d[i, N - 1 - j], name="E"),
        lambda c, d: d[:, ::-1]),
    "a part": (
        lambda c, d: te.compute((M - 3, N - 2), lambda i, j: d[i, j], name="E"),
        lambda c, d: d[:-3, :-2]),
    "padded": (
        lambda c, d: te.compute(
            (M + 3, N), lambda i, j: tirx.if_then_else(i < M, d[i, j], f32(5)), name="E"),
        lambda c, d: np.vstack([d, np.full((3, N), 5)])),
    "several of it": (
        lambda c, d: te.compute((2, M, N), lambda s, i, j: d[i, j] + s.astype("float32"), name="E"),
        lambda c, d: np.stack([d, d + 1])),
    "in one line": (
        lambda c, d: te.compute((M * N,), lambda t: d[t // N, t % N], name="E"),
        lambda c, d: d.ravel()),
}  # fmt: skip


@pytest.mark.parametrize(("name", "tiling"), drawn(product(BIASED, ["default", "threads"]), 8))
def test_blocks_after_a_bias(name: str, tiling: str) -> None:
    stage, expected = BIASED[name]

    def after(c: Any, bias: Any) -> Any:
        return stage(c, te.compute((M, N), lambda i, j: c[i, j] + bias[j], name="D"))

    check(after, lambda c, bias: expected(c, c + bias), {"bias": ((N,), "float32")},
          tiling=TILINGS[tiling])  # fmt: skip


def softmax() -> Any:
    def after(c: Any) -> Any:
        q, r = (te.reduce_axis((0, N), name=name) for name in "qr")
        most = te.compute((M,), lambda i: te.max(c[i, q], axis=[q]), name="most")
        raised = te.compute((M, N), lambda i, j: tirx.exp(c[i, j] - most[i]), name="raised")
        total = te.compute((M,), lambda i: te.sum(raised[i, r], axis=[r]), name="total")
        return te.compute((M, N), lambda i, j: raised[i, j] / total[i], name="share")

    return workload(after)


def test_of_several_sums_none_is_meant() -> None:
    with pytest.raises(ScheduleError, match=r"one block must be a reduction.*`C`, `most`, `total`"):
        mfmadsl.cpu_gemm_schedule(softmax())


def test_a_product_that_is_named_leaves_the_other_sums_to_their_own_loops() -> None:
    sch = s_tir.Schedule(softmax())
    mfmadsl.schedule_cpu_gemm(sch, sch.get_sblock("C"))
    result = np.full((M, N), 77, np.float32)
    mfmadsl.build_for_cpu(sch)(A, B, result)
    raised = np.exp(P - P.max(1, keepdims=True))
    close(result, raised / raised.sum(1, keepdims=True), 1e-4)


def test_two_results_are_refused() -> None:
    def after(c: Any) -> Any:
        return [c, te.compute((M, N), lambda i, j: c[i, j] + f32(1), name="D")]

    with pytest.raises(ScheduleError, match="`C` is a result besides `D`: a kernel keeps one"):
        mfmadsl.cpu_gemm_schedule(workload(after))


def test_a_function_that_is_not_there_is_refused_where_it_is_built() -> None:
    schedule = mfmadsl.cpu_gemm_schedule(workload(element_wise(lambda c, i, j: tirx.cosh(c))))
    with pytest.raises(mfmadsl.LoweringError, match=r"unknown intrinsic.*cosh"):
        mfmadsl.build_for_cpu(schedule)


@needs_bytes
@pytest.mark.parametrize("n", [64, 45])
def test_sums_of_bytes_become_bytes_again(n: int) -> None:
    """Scaled for each column, rounded and clipped, in rows of which no multiple of four."""
    a, b = (positions(s, t) for s, t in (((M, K), "uint8"), ((n, K), "int8")))
    scale = (np.arange(n) + 1).astype(np.float32) / 2**14
    x, y = te.placeholder((M, K), "uint8", name="A"), te.placeholder((n, K), "int8", name="B")
    s = te.placeholder((n,), "float32", name="scale")
    r = te.reduce_axis((0, K), name="k")
    c = te.compute(
        (M, n),
        lambda i, j: te.sum(x[i, r].astype("int32") * y[j, r].astype("int32"), axis=[r]), name="C",
    )  # fmt: skip

    def narrow(i: Any, j: Any) -> Any:
        value = tirx.round(c[i, j].astype("float32") * s[j])
        return tirx.max(tirx.min(value, f32(127)), f32(-128)).astype("int8")

    function = te.create_prim_func([x, y, s, te.compute((M, n), narrow, name="D")])
    exact = (a.astype(np.int64) @ b.T.astype(np.int64)).astype(np.float32) * scale
    wanted = np.clip(np.rint(exact), -128, 127)
    assert len(np.unique(wanted)) > 100
    np.testing.assert_array_equal(ran(function, [a, b, scale], (M, n), "int8"), wanted)


def stage_of(shape: tuple[int, int], function: Stage) -> Stage:
    return lambda x, *more: te.compute(shape, lambda i, k: function(x, i, k, *more), name="F")


def left(x: Array) -> Array:
    return x.astype(np.float64) @ B.T.astype(np.float64)


GATHERED = np.arange(M)[::-1].astype(np.int32) * 5 % M
OF_A: dict[str, tuple[Stage, tuple[int, int], Callable[[Array], Array]]] = {
    "scaled": (lambda a, i, k: a[i, k] * f32(0.5), (M, K), lambda a: a * 0.5),
    "clipped": (
        lambda a, i, k: tirx.if_then_else(a[i, k] > f32(0), a[i, k], f32(0)), (M, K),
        lambda a: np.maximum(a, 0)),
    "mirrored": (lambda a, i, k: a[M - 1 - i, k], (M, K), lambda a: a[::-1]),
    "every other row": (lambda a, i, k: a[2 * i, k], (2 * M, K), lambda a: a[::2]),
    "padded with zeros": (
        lambda a, i, k: tirx.if_then_else(tirx.all(i >= 2, i < M - 3), a[i - 2, k], f32(0)),
        (M - 5, K), lambda a: np.pad(a, ((2, 3), (0, 0)))),
    "padded with ones": (
        lambda a, i, k: tirx.if_then_else(i < M - 3, a[i, k], f32(1)), (M - 3, K),
        lambda a: np.pad(a, ((0, 3), (0, 0)), constant_values=1)),
    "longer rows of twos": (
        lambda a, i, k: tirx.if_then_else(k < K - 4, a[i, k], f32(2)), (M, K - 4),
        lambda a: np.pad(a, ((0, 0), (0, 4)), constant_values=2)),
    "below the diagonal": (
        lambda a, i, k: tirx.if_then_else(k <= i, a[i, k], f32(3)), (M, K),
        lambda a: np.where(np.tri(M, K, dtype=bool), a, 3)),
    "a sliding window": (lambda a, i, k: a[i, i + k], (M, M + K - 1),
                         lambda a: np.stack([a[i, i : i + K] for i in range(M)])),
}  # fmt: skip


@pytest.mark.parametrize(("name", "tiling"), drawn(product(OF_A, TILINGS), 10))
def test_the_first_factor_is_computed(name: str, tiling: str) -> None:
    function, shape, expected = OF_A[name]
    a = values(shape, "float32")
    of = workload(before_a=stage_of((M, K), function), a=(shape, "float32"))
    close(ran(of, [a, B], (M, N), tiling=TILINGS[tiling]), left(expected(a)), 1e-4)


def test_rows_are_gathered() -> None:
    extra: Extra = {"rows": ((M,), "int32")}
    of = workload(before_a=stage_of((M, K), lambda a, i, k, rows: a[rows[i], k]), extra=extra)
    close(ran(of, [A, B, GATHERED], (M, N)), left(A[GATHERED]), 1e-4)


def test_columns_are_gathered() -> None:
    columns = np.arange(N)[::-1].astype(np.int32) * 7 % N
    extra: Extra = {"columns": ((N,), "int32")}
    of = workload(before_b=stage_of((N, K), lambda b, j, k, at: b[at[j], k]), extra=extra)
    close(ran(of, [A, B, columns], (M, N)), P[:, columns], 1e-4)


def test_the_second_factor_is_dequantised() -> None:
    b = positions((N, K), "int8")
    scale = (np.arange(N) + 1).astype(np.float32) / 4096
    extra: Extra = {"scale": ((N,), "float32")}
    of = workload(
        before_b=stage_of((N, K), lambda b, j, k, s: b[j, k].astype("float32") * s[j]),
        extra=extra, b=((N, K), "int8"),
    )  # fmt: skip
    wanted = A.astype(np.float64) @ (b * scale.astype(np.float64)[:, None]).T
    close(ran(of, [A, b, scale], (M, N)), wanted, 1e-4)


def test_halves_are_cast_before() -> None:
    a = A.astype(np.float16)
    cast = stage_of((M, K), lambda a, i, k: a[i, k].astype("float32"))
    close(ran(workload(before_a=cast, a=((M, K), "float16")), [a, B], (M, N)), left(a), 1e-4)


def test_a_matrix_times_itself() -> None:
    a = te.placeholder((M, K), "float32", name="A")
    r = te.reduce_axis((0, K), name="k")
    c = te.compute((M, M), lambda i, j: te.sum(a[i, r] * a[j, r], axis=[r]), name="C")
    result = ran(te.create_prim_func([a, c]), [A], (M, M))
    close(result, A.astype(np.float64) @ A.T.astype(np.float64), 1e-4)


def test_a_vector_on_each_side() -> None:
    r = te.reduce_axis((0, K), name="k")
    a, v = te.placeholder((M, K), "float32", name="A"), te.placeholder((K,), "float32", name="v")
    x = B[0].copy()
    after = te.compute((M,), lambda i: te.sum(a[i, r] * v[r], axis=[r]), name="C")
    close(ran(te.create_prim_func([a, v, after]), [A, x], (M,)), P[:, 0], 1e-4)
    b, u = te.placeholder((N, K), "float32", name="B"), te.placeholder((K,), "float32", name="u")
    before = te.compute((N,), lambda j: te.sum(u[r] * b[j, r], axis=[r]), name="C")
    close(ran(te.create_prim_func([u, b, before]), [A[0].copy(), B], (N,)), P[0], 1e-4)


@pytest.mark.parametrize("tiling", TILINGS)
def test_what_is_neither_a_number_nor_finite_passes_through(tiling: str) -> None:
    """One NaN and one infinity make their own rows and columns such, and nothing else."""
    a, b = A.copy(), B.copy()
    a[3, 5], a[M - 1, K - 1], b[N - 1, 2] = np.nan, np.inf, -np.inf
    product_of = ran(workload(), [a, b], (M, N), tiling=TILINGS[tiling])
    with np.errstate(invalid="ignore"):
        wanted = a.astype(np.float64) @ b.T.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(product_of), np.isnan(wanted))
    np.testing.assert_array_equal(np.isposinf(product_of), np.isposinf(wanted))
    np.testing.assert_array_equal(np.isneginf(product_of), np.isneginf(wanted))
    finite = np.isfinite(wanted)
    assert finite.sum() >= (M - 2) * (N - 1)
    close(np.where(finite, product_of, 0), np.where(finite, wanted, 0), 1e-4)


def test_exp_of_infinities_and_of_no_numbers() -> None:
    a, b = np.zeros((M, K), np.float32), np.ones((N, K), np.float32)
    a[0, 0], a[1, 0], a[2, 0], a[3, 0] = np.inf, -np.inf, np.nan, 100.0
    result = ran(workload(element_wise(lambda c, i, j: tirx.exp(c))), [a, b], (M, N))
    assert np.isposinf(result[0]).all()
    assert (result[1] == 0).all()
    assert np.isnan(result[2]).all()
    assert np.isposinf(result[3]).all()
    assert (result[4:] == 1).all()
