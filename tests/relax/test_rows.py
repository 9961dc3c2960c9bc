"""Softmax, normalisations and their relatives: right for rows of any length, in kernels of ours."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tvm import relax, te, tirx
from tvm.tirx import PrimFunc

import mfmadsl
from benchmarks import rows as benchmark
from benchmarks.rows import rms_norm, softmax
from mfmadsl.passes.tir.annotation import AHEAD
from mfmadsl.relax.rows import row_schedule
from tests.conftest import FEW_EXAMPLES

TARGET = mfmadsl.target("gfx942")
BORDERS = (256, 1024, 4096, 16384)
"""Lengths up to which rows of unknown length have a kernel of their own."""

ERRORS = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}


def log_softmax(x: Any) -> Any:
    return relax.op.nn.log_softmax(x)


def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    return relax.op.nn.layer_norm(x, weight, bias, axes=-1)


WEIGHTS = {softmax: 0, log_softmax: 0, layer_norm: 2, rms_norm: 1}


def expected(made: Any, x: Any, *weights: Any) -> Any:
    """In float64."""
    x, *weights = (each.astype("float64") for each in (x, *weights))  # type: ignore[assignment]
    if made in (softmax, log_softmax):
        above = x - x.max(-1, keepdims=True)
        whole = np.exp(above).sum(-1, keepdims=True)
        return np.exp(above) / whole if made is softmax else above - np.log(whole)
    if made is layer_norm:
        x = x - x.mean(-1, keepdims=True)
    normal = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weights[0]
    return normal + weights[1] if made is layer_norm else normal


def function_of(made: Any, shape: Any, dtype: str) -> PrimFunc:
    return benchmark.function_of(made, [shape, *[shape[-1:]] * WEIGHTS[made]], dtype, TARGET)


def kernel_of(made: Any, shape: Any, dtype: str, arch: str = "gfx942") -> mfmadsl.Kernel:
    schedule = row_schedule(function_of(made, shape, dtype))
    assert schedule is not None
    return mfmadsl.build(schedule, arch=arch)


def check(kernel: mfmadsl.Kernel, made: Any, shape: tuple[int, ...], dtype: str) -> None:
    """Against float64, of elements of which none is like its neighbours, under the sanitizer."""
    generator = np.random.default_rng(5)
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    weights: list[tuple[int, ...]] = [shape[-1:]] * WEIGHTS[made]
    given = [(4 * generator.standard_normal(each)).astype(kind) for each in (shape, *weights)]
    found = np.full(shape, 77, kind)
    assert not mfmadsl.sanitize(kernel, [*given, found]).faults
    if found.size:
        exact = expected(made, *given)
        error = np.abs(found.astype("float64") - exact).max()
        assert error <= ERRORS[dtype] * np.abs(exact).max()


@pytest.mark.parametrize(
    ("made", "dtype"),
    [
        (made, dtype)
        for made in WEIGHTS
        for dtype in ERRORS
        if (made, dtype) != (layer_norm, "bfloat16")  # which TVM refuses
    ],
)
def test_rows_of_known_length(made: Any, dtype: str) -> None:
    for shape in ((3, 1000), (1, 77), (2, 3, 512)):
        check(kernel_of(made, shape, dtype), made, shape, dtype)


@cache
def of_any_length() -> mfmadsl.Kernel:
    rows, length = (tirx.Var(name, "int64") for name in ("rows", "length"))
    return kernel_of(softmax, (rows, length), "float16", "gfx950")


@FEW_EXAMPLES
@given(
    st.sampled_from([1, 2, 3]),
    st.sampled_from([1, 2, 63, 65, *(b + n for b in BORDERS for n in (-1, 0, 1))])
    | st.integers(1, 20000),
)
def test_rows_of_unknown_length(rows: int, length: int) -> None:
    check(of_any_length(), softmax, (rows, length), "float16")


def test_a_launch_runs_the_kernel_for_its_length() -> None:
    """Threads grow with the length, so that a short row does not wait for idle ones."""
    threads = []
    for length in (1, *(border + n for border in BORDERS for n in (0, 1))):
        arrays = [np.zeros((2, length), np.float16)] * 2
        (launch,) = of_any_length().launches(arrays)
        threads.append(int(np.prod(launch.block)))
        assert int(np.prod(launch.grid)) == 2
    assert threads == [64, 64, 128, 128, 256, 256, 512, 512, 1024]


def test_loads_of_a_thread_do_not_wait_for_each_other() -> None:
    """Of rows whose length is no number of whole steps."""
    function = function_of(softmax, (4, 1000), "float32")
    schedule = row_schedule(function)
    assert schedule is not None
    kernel = mfmadsl.build(schedule, arch="gfx942")
    lines = [line.split()[0] for line in kernel.assembly.splitlines() if line.startswith("\t")]
    waits = [n for n, line in enumerate(lines) if line == "s_waitcnt"]
    loads = [n for n, line in enumerate(lines) if line.startswith("global_load")]
    first = [n for n in loads if n < min(w for w in waits if w > loads[0])]
    assert len(first) == 8


def sums(x: te.Tensor) -> te.Tensor:
    along = te.reduce_axis((0, x.shape[1]), "k")
    return te.compute((x.shape[0],), lambda i: te.sum(x[i, along], axis=along), name="sums")


def is_taken(made: Any, *shape: int) -> bool:
    x = te.placeholder(shape, name="x", dtype="float32")
    return row_schedule(te.create_prim_func([x, *made(x)])) is not None


def test_what_is_not_row_by_row_is_left_to_others() -> None:
    def rows(x: te.Tensor) -> list[te.Tensor]:
        found = sums(x)
        return [te.compute(x.shape, lambda i, k: x[i, k] / found[i], name="shares")]

    def of_other_rows(x: te.Tensor) -> list[te.Tensor]:
        found = sums(x)
        return [te.compute(x.shape, lambda i, k: x[i, k] / found[63 - i], name="others")]

    def of_all_rows(x: te.Tensor) -> list[te.Tensor]:
        found = sums(x)
        return [te.compute(x.shape, lambda i, k: x[i, k] / found[k], name="columns")]

    def along_rows(x: te.Tensor) -> list[te.Tensor]:
        found = sums(x)
        return [te.compute(x.shape, lambda k, i: x[i, k] / found[i], name="turned")]

    def also_the_sums(x: te.Tensor) -> list[te.Tensor]:
        found = sums(x)
        return [found, te.compute(x.shape, lambda i, k: x[i, k] / found[i], name="shares")]

    def the_sums_alone(x: te.Tensor) -> list[te.Tensor]:
        return [sums(x)]

    def without_sums(x: te.Tensor) -> list[te.Tensor]:
        return [te.compute(x.shape, lambda i, k: x[i, k] + 1, name="more")]

    assert is_taken(rows, 64, 64)
    for other in (of_other_rows, of_all_rows, along_rows, also_the_sums, the_sums_alone,
                  without_sums):  # fmt: skip
        assert not is_taken(other, 64, 64), other.__name__


def test_loops_are_annotated_for_the_pass() -> None:
    schedule = row_schedule(function_of(softmax, (4, 1000), "float32"))
    assert schedule is not None
    assert schedule.mod["main"].script().count(AHEAD) == 3
