"""Products whose rows and matrices are chosen by arrays of indices: right, and in a fast loop."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tvm import te, tirx
from tvm.tirx import PrimFunc

import mfmadsl
from tests.schedule.matrix_core.gemm.workloads import Array

BLOCKS, ROWS, COLUMNS, EXPERTS, TOKENS = 3, 48, 40, 4, 21


def experts(
    k: int, index: str = "int32", tokens: Any = TOKENS, dtype: str = "float16", held: Any = None,
    block: tuple[int, int] = (ROWS, COLUMNS),
) -> PrimFunc:  # fmt: skip
    """C[b, i, j] is the sum over k of x[rows[b, i], k] * w[expert[b], j, k].

    Where `held` is given, the row is 0 unless that holds of its index.
    """
    x = te.placeholder((tokens, k), name="x", dtype=dtype)
    w = te.placeholder((EXPERTS, block[1], k), name="w", dtype=dtype)
    rows = te.placeholder((BLOCKS, block[0]), name="rows", dtype=index)
    expert = te.placeholder((BLOCKS,), name="expert", dtype=index)
    r = te.reduce_axis((0, k), name="k")

    def row(b: Any, i: Any, k: Any) -> Any:
        element = x[rows[b, i], k]
        if held is None:
            return element
        return tirx.if_then_else(held(rows[b, i]), element, tirx.const(0, dtype))

    left = row if held is None else te.compute((BLOCKS, block[0], k), row, name="left")
    c = te.compute(
        (BLOCKS, block[0], block[1]),
        lambda b, i, j: te.sum(
            left(b, i, r).astype("float32") * w[expert[b], j, r].astype("float32"), axis=[r]
        ),
        name="C",
    )
    return te.create_prim_func([x, rows, w, expert, c])


def built(function: PrimFunc, arch: str) -> mfmadsl.Kernel:
    """The kernel, whose loop has to be a fast one."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", mfmadsl.SlowLoopWarning)
        return mfmadsl.build(mfmadsl.gemm_schedule(function, arch=arch), arch=arch)


def operands(
    k: int, index: str, block: tuple[int, int] = (ROWS, COLUMNS)
) -> tuple[Array, Array, Array, Array]:
    """(x, rows, w, expert) of small whole numbers."""
    generator = np.random.default_rng(k)
    x = generator.integers(-3, 4, (TOKENS, k)).astype("float16")
    w = generator.integers(-3, 4, (EXPERTS, block[1], k)).astype("float16")
    rows = generator.permuted(np.resize(np.arange(TOKENS), (BLOCKS, block[0]))).astype(index)
    return x, rows, w, np.array([3, 0, 3], index)


@pytest.mark.parametrize("arch", ["gfx908", "gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("index", ["int32", "int64", "uint8"])
@pytest.mark.parametrize("k", [256, 250, 33])
def test_experts_and_their_rows(arch: str, index: str, k: int) -> None:
    x, rows, w, expert = operands(k, index)
    result = np.full((BLOCKS, ROWS, COLUMNS), np.nan, np.float32)
    mfmadsl.sanitize(built(experts(k, index), arch), [x, rows, w, expert, result])
    expected = np.einsum("bik,bjk->bij", x[rows].astype(float), w[expert].astype(float))
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("swizzle", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float8_e4m3fn"])
def test_rows_that_go_straight_into_the_lds(dtype: str, swizzle: bool) -> None:
    """Where lanes exchange what they load, they read the indices of other rows, too."""
    k, block = 1024, (64, 64)
    function = experts(k, dtype=dtype, block=block)
    tiling = replace(
        mfmadsl.gemm_tiling(function, arch="gfx950"), block=block, waves=(2, 2), k_step=256,
        k_waves=1, stages=2, swizzle=swizzle,
    )  # fmt: skip
    schedule = mfmadsl.gemm_schedule(function, arch="gfx950", tiling=tiling)
    kernel = mfmadsl.build(schedule, arch="gfx950")
    assert re.search(r"buffer_load_dwordx4 .* lds", kernel.assembly)
    x, rows, w, expert = operands(k, "int32", block)
    operand_type = getattr(ml_dtypes, dtype, dtype)
    result = np.full((BLOCKS, *block), np.nan, np.float32)
    arguments = [x.astype(operand_type), rows, w.astype(operand_type), expert, result]
    mfmadsl.sanitize(kernel, arguments)
    expected = np.einsum("bik,bjk->bij", x[rows].astype(float), w[expert].astype(float))
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_rows_of_as_many_tokens_as_a_launch_brings(arch: str) -> None:
    kernel = built(experts(128, tokens=te.var("tokens")), arch)
    x, rows, w, expert = operands(128, "int32")
    result = np.full((BLOCKS, ROWS, COLUMNS), np.nan, np.float32)
    mfmadsl.sanitize(kernel, [x, rows, w, expert, result])
    expected = np.einsum("bik,bjk->bij", x[rows].astype(float), w[expert].astype(float))
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("none", [-1, -(1 << 31), TOKENS, (1 << 31) - 1])
def test_an_index_that_means_no_row(arch: str, none: int) -> None:
    def held(row: Any) -> Any:
        return tirx.all(row >= 0, row < TOKENS)

    x, rows, w, expert = operands(96, "int32")
    rows[:, ::3] = none
    result = np.full((BLOCKS, ROWS, COLUMNS), np.nan, np.float32)
    kernel = built(experts(96, held=held), arch)
    mfmadsl.sanitize(kernel, [x, rows, w, expert, result])
    taken = np.where(rows[..., None] == none, 0, x[np.where(rows == none, 0, rows)])
    expected = np.einsum("bik,bjk->bij", taken.astype(float), w[expert].astype(float))
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_a_block_without_an_expert_reads_nothing(arch: str) -> None:
    """What its first row would be lies far before the weights, and the next one far behind."""
    k = 128
    x = te.placeholder((BLOCKS, ROWS, k), name="x", dtype="float16")
    w = te.placeholder((EXPERTS, COLUMNS, k), name="w", dtype="float16")
    expert = te.placeholder((BLOCKS,), name="expert", dtype="int32")
    r, zero = te.reduce_axis((0, k), name="k"), tirx.const(0, "float16")

    def weight(b: Any, j: Any, k: Any) -> Any:
        is_one = tirx.all(expert[b] >= 0, expert[b] < EXPERTS)
        return tirx.if_then_else(is_one, w[expert[b], j, k], zero)

    chosen = te.compute((BLOCKS, COLUMNS, k), weight, name="chosen")
    c = te.compute(
        (BLOCKS, ROWS, COLUMNS),
        lambda b, i, j: te.sum(
            x[b, i, r].astype("float32") * chosen[b, j, r].astype("float32"), axis=[r]
        ),
        name="C",
    )
    function = te.create_prim_func([x, w, expert, c])
    kernel = built(function, arch)
    left = np.ones((BLOCKS, ROWS, k), np.float16)
    weights = np.full((EXPERTS, COLUMNS, k), 2, np.float16)
    result = np.full((BLOCKS, ROWS, COLUMNS), np.nan, np.float32)
    mfmadsl.sanitize(kernel, [left, weights, np.array([-1 << 20, 2, 1 << 20], "int32"), result])
    np.testing.assert_array_equal(result, np.array([0, 2 * k, 0])[:, None, None] + 0 * result)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_indices_of_indices(arch: str) -> None:
    m, n, k = 70, 40, 96
    x = te.placeholder((m, k), name="x", dtype="float16")
    b = te.placeholder((n, k), name="b", dtype="float16")
    first, second = (te.placeholder((m,), name=name, dtype="int32") for name in ("p", "q"))
    r = te.reduce_axis((0, k), name="k")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(
            x[first[second[i]], r].astype("float32") * b[j, r].astype("float32"), axis=[r]
        ),
        name="C",
    )
    kernel = built(te.create_prim_func([x, b, first, second, c]), arch)
    generator = np.random.default_rng(0)
    left, right = (generator.integers(-3, 4, (rows, k)).astype("float16") for rows in (m, n))
    p, q = (generator.permutation(m).astype("int32") for _ in range(2))
    result = np.full((m, n), np.nan, np.float32)
    mfmadsl.sanitize(kernel, [left, right, p, q, result])
    np.testing.assert_array_equal(result, left[p[q]].astype(float) @ right.T.astype(float))


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize(
    ("m", "k", "by"), [(16, 128, 3), (48, 640, 5), (200, 96, 6), (100, 1000, 1)]
)
def test_rows_of_the_tokens_of_slots(arch: str, m: int, k: int, by: int) -> None:
    """A token has `by` slots. LLVM takes the quotient for another, and a constant to mend it."""
    n, tokens = 40, -(-m // by)
    x = te.placeholder((n, k), name="x", dtype="bfloat16")
    w = te.placeholder((tokens, k), name="w", dtype="bfloat16")
    slots = te.placeholder((m,), name="slots", dtype="int32")
    r = te.reduce_axis((0, k), name="k")

    def product(one: Any, other: Any) -> Any:
        return te.sum(one.astype("float32") * other.astype("float32"), axis=[r])

    left = te.compute((m, n), lambda i, j: product(w[slots[i] // by, r], x[j, r]), name="C")
    right = te.compute((n, m), lambda i, j: product(x[i, r], w[slots[j] // by, r]), name="C")
    generator = np.random.default_rng(m)
    a, b = (generator.integers(-3, 4, (rows, k)).astype(ml_dtypes.bfloat16) for rows in (n, tokens))
    slot = generator.permutation(m).astype("int32")
    expected = b[slot // by].astype(float) @ a.T.astype(float)
    for output, whole in ((left, expected), (right, expected.T)):
        result = np.full(whole.shape, np.nan, np.float32)
        kernel = built(te.create_prim_func([x, w, slots, output]), arch)
        mfmadsl.sanitize(kernel, [a, b, slot, result])
        np.testing.assert_array_equal(result, whole)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("first", [-33, -1, 0, 5, 40])
def test_rows_from_one_on_that_may_lie_before_the_first(arch: str, first: int) -> None:
    """Where one row lies says nothing of the next, which has a condition of its own."""
    m, n, k = 64, 40, 96
    x = te.placeholder((m, k), name="x", dtype="float16")
    b = te.placeholder((n, k), name="b", dtype="float16")
    start = te.placeholder((1,), name="start", dtype="int32")
    r, zero = te.reduce_axis((0, k), name="k"), tirx.const(0, "float16")

    def row(i: Any, k: Any) -> Any:
        is_one = tirx.all(start[0] + i >= 0, start[0] + i < m)
        return tirx.if_then_else(is_one, x[start[0] + i, k], zero)

    left = te.compute((m, k), row, name="left")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(left[i, r].astype("float32") * b[j, r].astype("float32"), axis=[r]),
        name="C",
    )
    function = te.create_prim_func([x, b, start, c])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mfmadsl.SlowLoopWarning)
        kernel = mfmadsl.build(mfmadsl.gemm_schedule(function, arch=arch), arch=arch)
    generator = np.random.default_rng(0)
    a, right = (generator.integers(-3, 4, (rows, k)).astype("float16") for rows in (m, n))
    result = np.full((m, n), np.nan, np.float32)
    mfmadsl.sanitize(kernel, [a, right, np.array([first], "int32"), result])
    taken = np.zeros((m, k))
    taken[max(0, -first) : m - max(0, first)] = a[max(0, first) : m + min(0, first)]
    np.testing.assert_array_equal(result, taken @ right.T.astype(float))


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_an_index_that_changes_with_k_is_read_an_iteration_ahead(arch: str) -> None:
    m, n, k, page = 40, 40, 4096, 16
    x = te.placeholder((k // page, m, page), name="x", dtype="float16")
    b = te.placeholder((n, k), name="b", dtype="float16")
    pages = te.placeholder((k // page,), name="pages", dtype="int32")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(
            x[pages[r // page], i, r % page].astype("float32") * b[j, r].astype("float32"),
            axis=[r],
        ),
        name="C",
    )
    kernel = built(te.create_prim_func([x, b, pages, c]), arch)
    generator = np.random.default_rng(0)
    left = generator.integers(-3, 4, (k // page, m, page)).astype("float16")
    right = generator.integers(-3, 4, (n, k)).astype("float16")
    order = generator.permutation(k // page).astype("int32")
    result = np.full((m, n), np.nan, np.float32)
    mfmadsl.sanitize(kernel, [left, right, order, result])
    taken = left[order].transpose(1, 0, 2).reshape(m, k)
    np.testing.assert_array_equal(result, taken.astype(float) @ right.T.astype(float))
