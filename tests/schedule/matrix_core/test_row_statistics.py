"""Rows that are normalised on their way to a product, whose sums each workgroup adds up first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tvm import te
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.schedule import ScheduleError, Tiling, gemm_schedule, gemm_tiling
from mfmadsl.schedule.product.row_statistics import MOST_ROWS, row_statistics
from tests.conftest import FEW_EXAMPLES

SMALL = Tiling((16, 32), 128, (1, 2), "mfma_f32_16x16x16_f16", 2, k_waves=2)
BF16 = {"bfloat16": ml_dtypes.bfloat16}


def summed(x: te.Tensor, element: Any, name: str) -> te.Tensor:
    along = te.reduce_axis((0, x.shape[1]), f"{name}_k")
    return te.compute((x.shape[0],), lambda i: te.sum(element(i, along), axis=along), name=name)


def wide(value: Any) -> Any:
    return value.astype("float32")


def rms(x: te.Tensor, weight: te.Tensor) -> te.Tensor:
    rows, length = x.shape
    squares = te.compute((rows, length), lambda i, k: wide(x[i, k]) * wide(x[i, k]), name="squares")
    whole = summed(x, lambda i, k: squares[i, k], "whole")
    scale = te.compute((rows,), lambda i: te.rsqrt(whole[i] / length + 1e-5), name="scale")
    return te.compute(
        (rows, length),
        lambda i, k: (wide(x[i, k]) * wide(weight[k]) * scale[i]).astype(x.dtype), name="normal",
    )  # fmt: skip


def layer(x: te.Tensor, weight: te.Tensor) -> te.Tensor:
    """Of which one statistic is made with the other."""
    rows, length = x.shape
    whole = summed(x, lambda i, k: wide(x[i, k]), "whole")
    mean = te.compute((rows,), lambda i: whole[i] / length, name="mean")
    spread = summed(x, lambda i, k: (wide(x[i, k]) - mean[i]) * (wide(x[i, k]) - mean[i]), "spread")
    return te.compute(
        (rows, length),
        lambda i, k: (
            (wide(x[i, k]) - mean[i]) * te.rsqrt(spread[i] / length + 1e-5) * wide(weight[k])
        ).astype(x.dtype),
        name="normal",
    )  # fmt: skip


def weighted(x: te.Tensor, weight: te.Tensor) -> te.Tensor:
    """What is computed without a statistic."""
    return te.compute(x.shape, lambda i, k: x[i, k] * weight[k], name="weighted")


def product(
    made: Any, m: Any, n: Any, k: int, dtype: str = "float16", extra: Any = None
) -> PrimFunc:
    x = te.placeholder((m, k), dtype, name="x")
    weight = te.placeholder((k,), dtype, name="weight")
    b = te.placeholder((n, k), dtype, name="B")
    normal = made(x, weight)
    along = te.reduce_axis((0, k), "k")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(wide(normal[i, along]) * wide(b[j, along]), axis=along),
        name="C",
    )
    results = [c] if extra is None else extra(x, c)
    return te.create_prim_func([x, weight, b, *results])


def operands(m: int, n: int, k: int, dtype: str) -> list[Any]:
    generator = np.random.default_rng(3)
    kind = BF16.get(dtype, dtype)
    x = (3 * generator.standard_normal((m, k)) + 1).astype(kind)
    weight = (1 + 0.2 * generator.standard_normal(k)).astype(kind)
    b = generator.standard_normal((n, k)).astype(kind)
    return [x, weight, b, np.full((m, n), np.nan, np.float32)]


def expected(made: Any, x: Any, weight: Any, b: Any) -> tuple[Any, Any]:
    """The product in float64, and how large it would be without signs."""
    x, weight, b = (each.astype(np.float64) for each in (x, weight, b))
    if made is layer:
        x = x - x.mean(1, keepdims=True)
    normal = x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * weight
    return normal @ b.T, np.abs(normal) @ np.abs(b).T


def check(
    made: Any, kernel: mfmadsl.Kernel, m: int, n: int, k: int, dtype: str = "float16"
) -> None:
    given_ = operands(m, n, k, dtype)
    assert kernel.remarks == ()
    assert not mfmadsl.sanitize(kernel, given_).faults
    exact, size = expected(made, *given_[:3])
    unit = 2.0**-8 if dtype == "bfloat16" else 2.0**-10
    assert (np.abs(given_[3] - exact) <= unit * size).all()


@pytest.mark.parametrize("made", [rms, layer])
@pytest.mark.parametrize("m", range(1, MOST_ROWS + 1))
def test_rows_that_are_normalised(made: Any, m: int) -> None:
    kernel = mfmadsl.build(gemm_schedule(product(made, m, 70, 600), tiling=SMALL), "gfx942")
    assert kernel.next is None
    check(made, kernel, m, 70, 600)


@pytest.mark.parametrize("arch", ["gfx908", "gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_tiling_that_is_chosen(arch: str, dtype: str) -> None:
    function = product(rms, 1, 96, 1024, dtype)
    check(rms, mfmadsl.build(gemm_schedule(function, arch=arch), arch), 1, 96, 1024, dtype)


@pytest.mark.thorough
@FEW_EXAMPLES
@given(
    st.integers(1, MOST_ROWS), st.integers(1, 80), st.integers(300, 1500),
    st.sampled_from([1, 2]), st.sampled_from([1, 2]), st.sampled_from([128, 256]),
)  # fmt: skip
def test_all_shapes_and_tilings(
    m: int, n: int, k: int, split_k: int, k_waves: int, k_step: int
) -> None:
    tiling = replace(SMALL, split_k=split_k, k_waves=k_waves, k_step=k_step)
    kernel = mfmadsl.build(gemm_schedule(product(rms, m, n, k), tiling=tiling), "gfx942")
    check(rms, kernel, m, n, k)


def test_workgroups_that_walk_over_tiles() -> None:
    tiling = replace(SMALL, persistent=True)
    n = 32 * 310
    kernel = mfmadsl.build(gemm_schedule(product(rms, 2, n, 256), tiling=tiling), "gfx942")
    assert kernel.grid == (304, 1, 1)
    check(rms, kernel, 2, n, 256)


def test_statistics_take_no_room_beside_the_tiles() -> None:
    """They lie where tiles do later."""
    with_norm, without = (
        mfmadsl.build(gemm_schedule(product(made, 1, 96, 1024), tiling=SMALL), "gfx942")
        for made in (rms, weighted)
    )
    assert with_norm.lds_bytes == without.lds_bytes


def test_the_tiling_that_is_told_is_the_one_that_is_taken() -> None:
    function = product(rms, 1, 512, 2048)
    taken, told = (
        mfmadsl.build(gemm_schedule(function, tiling=tiling), "gfx942").assembly
        for tiling in (None, gemm_tiling(function))
    )
    assert taken == told


def refused(function: PrimFunc) -> str:
    assert row_statistics(function) is None
    with pytest.raises(ScheduleError) as caught:
        gemm_schedule(function)
    return str(caught.value)


def test_more_rows_or_an_unknown_number_are_refused() -> None:
    for m in (MOST_ROWS + 1, te.var("m")):
        assert "one block must be a reduction" in refused(product(rms, m, 64, 512))


def test_sums_of_anything_else_are_refused() -> None:
    def also_a_result(x: te.Tensor, c: te.Tensor) -> Sequence[te.Tensor]:
        return [c, summed(x, lambda i, k: wide(x[i, k]), "others")]

    def of_the_product(_: te.Tensor, c: te.Tensor) -> Sequence[te.Tensor]:
        return [summed(c, lambda i, k: c[i, k], "after")]

    for extra in (also_a_result, of_the_product):
        function = product(lambda x, _: x, 2, 64, 512, extra=extra)
        assert "one block must be a reduction" in refused(function)


@pytest.mark.parametrize("tiling", [None, SMALL])
def test_n_may_be_unknown(tiling: Tiling | None) -> None:
    """There is one kernel for all."""
    function = product(rms, 1, te.var("n"), 512)
    kernel = mfmadsl.build(gemm_schedule(function, tiling=tiling), "gfx942")
    for n in (1, 32, 70):
        check(rms, kernel, 1, n, 512)


@pytest.mark.parametrize("arch", ["gfx908", "gfx942", "gfx950"])
@pytest.mark.parametrize("made", [rms, layer])
@pytest.mark.parametrize(("m", "k"), [(2, 600), (4, 768), (3, 1000), (1, 1000)])
def test_the_tiling_that_is_chosen_leaves_room_for_them(
    made: Any, arch: str, m: int, k: int
) -> None:
    """Where K is one step, its tiles may take all of the LDS."""
    check(made, mfmadsl.build(gemm_schedule(product(made, m, 96, k), arch=arch), arch), m, 96, k)


def test_rows_of_one_element_are_refused() -> None:
    assert "one block must be a reduction" in refused(product(rms, 2, 1, 1))


def test_a_statistic_of_columns_is_not_taken_for_one_of_rows() -> None:
    x = te.placeholder((2, 256), "float16", name="x")
    b = te.placeholder((64, 256), "float16", name="B")
    along, other = te.reduce_axis((0, 256), "k"), te.reduce_axis((0, 64), "j")
    whole = te.compute((256,), lambda k: te.sum(wide(b[other, k]), axis=other), name="whole")
    scaled = te.compute(
        (64, 256), lambda j, k: (wide(b[j, k]) / whole[k]).astype("float16"), name="D"
    )
    c = te.compute(
        (2, 64),
        lambda i, j: te.sum(wide(x[i, along]) * wide(scaled[j, along]), axis=along),
        name="C",
    )
    assert "one block must be a reduction" in refused(te.create_prim_func([x, b, c]))
