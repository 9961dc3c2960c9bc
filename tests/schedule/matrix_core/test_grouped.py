"""Grouped products: each row is multiplied by the matrix of its group, under the sanitizer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tvm import te, tirx

import mfmadsl
from mfmadsl.schedule import ScheduleError
from mfmadsl.schedule.matrix_core.gemm import gemm_tilings
from mfmadsl.schedule.product.grouped import group_of_rows
from tests.cases import FIRST, drawn
from tests.schedule.matrix_core.gemm.workloads import Array

CHIPS = ["gfx908", "gfx90a", "gfx942", "gfx950"]
ENDS = {
    "even": [50, 100, 150, 200],
    "an end within a tile": [1, 70, 131, 200],
    "groups without rows": [0, 0, 131, 131],
    "all rows in the first": [200, 200, 200, 200],
    "all rows in the last": [0, 0, 0, 200],
    "the last end is not read": [13, 77, 78, 0],
}


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    generator = np.random.default_rng(seed)
    values: Array = generator.integers(-3, 4, shape).astype(getattr(ml_dtypes, dtype, dtype))
    return values


def expected(a: Array, b: Array, ends: Array) -> Array:
    """The product in float64, each row with the matrix of its group."""
    group = (ends[None, :-1] <= np.arange(len(a))[:, None]).sum(1)
    result: Array = np.einsum("ik,ijk->ij", a.astype(float), b.astype(float)[group])
    return result


def run(workload: Any, arch: str, arguments: list[Array], tiling: Any = None) -> Array:
    """What the kernel leaves in the last argument."""
    schedule = mfmadsl.gemm_schedule(workload, arch=arch, tiling=tiling)
    kernel = mfmadsl.build(schedule, arch=arch)
    assert not kernel.remarks
    mfmadsl.sanitize(kernel, arguments)
    return arguments[-1]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
def test_rows_of_groups(arch: str, ends: list[int]) -> None:
    m, n, k = 200, 100, 72
    a, b = numbers((m, k), "float16", 0), numbers((4, n, k), "float16", 1)
    where, c = np.array(ends, "int32"), np.full((m, n), np.nan, np.float32)
    run(mfmadsl.grouped_matmul(m, n, k, 4, "float16", "float32"), arch, [a, where, b, c])
    np.testing.assert_array_equal(c, expected(a, b, where))


@pytest.mark.parametrize(
    ("arch", "dtype", "sums"),
    [
        ("gfx90a", "bfloat16", "float32"),
        ("gfx942", "float16", "float16"),
        ("gfx950", "bfloat16", "bfloat16"),
        ("gfx942", "int8", "int32"),
        ("gfx942", "float8_e4m3fnuz", "float32"),
        ("gfx942", "float32", "float32"),
        ("gfx942", "float64", "float64"),
        ("gfx950", "float8_e4m3fn", "float32"),
    ],
)
def test_types(arch: str, dtype: str, sums: str) -> None:
    m, n, k = 90, 48, 130
    a, b = numbers((m, k), dtype, 0), numbers((3, n, k), dtype, 1)
    kind = getattr(ml_dtypes, sums, sums)
    ends, c = np.array([20, 55, m], "int32"), np.full((m, n), 99, kind)
    run(mfmadsl.grouped_matmul(m, n, k, 3, dtype, sums), arch, [a, ends, b, c])
    np.testing.assert_array_equal(c, expected(a, b, ends).astype(kind))


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("k", [64, 250])
def test_rows_of_tokens(arch: str, k: int) -> None:
    m, n, tokens = 120, 64, 31
    x, b = numbers((tokens, k), "float16", 0), numbers((5, n, k), "float16", 1)
    rows = np.random.default_rng(2).integers(0, tokens, m).astype("int32")
    ends, c = np.array([3, 60, 60, 119, m], "int32"), np.full((m, n), np.nan, np.float32)
    workload = mfmadsl.grouped_matmul(m, n, k, 5, "float16", "float32", tokens=tokens)
    run(workload, arch, [x, rows, ends, b, c])
    np.testing.assert_array_equal(c, expected(x[rows], b, ends))


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("shape", [(2, 16, 32, 2), (17, 33, 65, 2), (300, 40, 32, 40)])
def test_shapes_of_less_than_a_tile(arch: str, shape: tuple[int, int, int, int]) -> None:
    m, n, k, groups = shape
    a, b = numbers((m, k), "float16", 0), numbers((groups, n, k), "float16", 1)
    ends = np.sort(np.random.default_rng(m).integers(0, m + 1, groups)).astype("int32")
    c = np.full((m, n), np.nan, np.float32)
    run(mfmadsl.grouped_matmul(m, n, k, groups, "float16", "float32"), arch, [a, ends, b, c])
    np.testing.assert_array_equal(c, expected(a, b, ends))


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("rows", [16, 32, 64, 128])
def test_tilings(arch: str, rows: int) -> None:
    m, n, k = 1000, 128, 256
    workload = mfmadsl.grouped_matmul(m, n, k, 4, "float16", "float32")
    tiling = next(each for each in gemm_tilings(workload, arch=arch) if each.block[0] == rows)
    a, b = numbers((m, k), "float16", 0), numbers((4, n, k), "float16", 1)
    ends, c = np.array([rows - 1, rows, 517, m], "int32"), np.full((m, n), np.nan, np.float32)
    run(workload, arch, [a, ends, b, c], tiling)
    np.testing.assert_array_equal(c, expected(a, b, ends))


@pytest.mark.parametrize("seed", drawn(range(FIRST, FIRST + 60), 6))
def test_random_groups(seed: int) -> None:
    """Lengths around those of a tile and of half of it, and more groups than a wave has lanes."""
    rng = np.random.default_rng(seed)
    arch = str(rng.choice(CHIPS))
    groups = int(rng.choice([2, 5, 63, 64, 65, 128, 150]))
    side = int(rng.choice([16, 32, 64, 128]))
    around = 0, 0, 1, side // 2 - 1, side // 2, side // 2 + 1, side - 1, side, side + 1, 3 * side
    lengths = rng.choice(around, groups)
    lengths[np.cumsum(lengths) > 1500] = 0
    lengths[rng.integers(groups)] += 1
    m, n, k = int(lengths.sum()), int(rng.choice([16, 40, 130])), int(rng.choice([32, 72]))
    tokens = int(rng.integers(1, 90)) if rng.random() < 0.3 else None
    workload = mfmadsl.grouped_matmul(m, n, k, groups, "float16", "float32", tokens=tokens)
    offered = gemm_tilings(workload, arch=arch)
    alike = [each for each in offered if each.block[0] == side] or offered
    a, b = numbers((tokens or m, k), "float16", seed), numbers((groups, n, k), "float16", seed + 1)
    which = rng.integers(0, len(a), m).astype("int32")
    ends, c = np.cumsum(lengths).astype("int32"), np.full((m, n), np.nan, np.float32)
    arrays = [a, *([] if tokens is None else [which]), ends, b, c]
    run(workload, arch, arrays, alike[int(rng.integers(len(alike)))])
    np.testing.assert_array_equal(c, expected(a if tokens is None else a[which], b, ends))


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_what_follows_is_computed_as_rows_are_stored(arch: str) -> None:
    """Several blocks: a bias of the row's group, which another block makes, and two more."""
    m, n, k, groups = 90, 40, 64, 3
    a = te.placeholder((m, k), name="A", dtype="float16")
    ends = te.placeholder((groups,), name="ENDS", dtype="int32")
    b = te.placeholder((groups, n, k), name="B", dtype="float16")
    bias = te.placeholder((groups, n), name="BIAS", dtype="float16")
    residual = te.placeholder((m, n), name="R", dtype="float16")
    group, r = group_of_rows(ends, m), te.reduce_axis((0, k), name="k")
    twice = te.compute((groups, n), lambda e, j: bias[e, j].astype("float32") * 2.0, name="twice")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(
            a[i, r].astype("float32") * b[group[i], j, r].astype("float32"), axis=[r]
        ),
        name="C",
    )
    biased = te.compute((m, n), lambda i, j: c[i, j] + twice[group[i], j], name="biased")
    positive = te.compute((m, n), lambda i, j: tirx.max(biased[i, j], 0.0), name="positive")
    d = te.compute((m, n), lambda i, j: positive[i, j].astype("float16") + residual[i, j], name="D")
    workload = te.create_prim_func([a, ends, b, bias, residual, d])
    left, right = numbers((m, k), "float16", 0), numbers((groups, n, k), "float16", 1)
    plus, more = numbers((groups, n), "float16", 2), numbers((m, n), "float16", 3)
    where, result = np.array([10, 71, m], "int32"), np.full((m, n), np.nan, np.float16)
    run(workload, arch, [left, where, right, plus, more, result])
    own = 2 * plus.astype(float)[(where[None, :-1] <= np.arange(m)[:, None]).sum(1)]
    np.testing.assert_array_equal(result, np.maximum(expected(left, right, where) + own, 0) + more)


FOLLOWS: dict[str, Any] = {
    "it may read the element of its place": lambda c, g: [lambda i, j: c[i, j] + c[j, i]],
    "it may read the group of its row": lambda c, g: [lambda i, j: c[i, j] + g[j]],
    "has to end in one parameter": lambda c, g: [
        lambda i, j: c[i, j] + 1.0,
        lambda i, j: c[i, j] * 2.0,
    ],
}


@pytest.mark.parametrize("said", FOLLOWS)
def test_what_follows_otherwise_is_refused(said: str) -> None:
    a, b = (te.placeholder((48, 64), "float16", "A"), te.placeholder((2, 48, 64), "float16", "B"))
    ends = te.placeholder((2,), name="ENDS", dtype="int32")
    group, r = group_of_rows(ends, 48), te.reduce_axis((0, 64), name="k")
    c = te.compute(
        (48, 48),
        lambda i, j: te.sum(
            a[i, r].astype("float32") * b[group[i], j, r].astype("float32"), axis=[r]
        ),
        name="C",
    )
    results = [te.compute((48, 48), each, name="D") for each in FOLLOWS[said](c, group)]
    with pytest.raises(ScheduleError, match=said):
        mfmadsl.gemm_schedule(te.create_prim_func([a, ends, b, *results]), arch="gfx942")


@pytest.mark.parametrize(
    "ends", [[90, 10, 50, 30], [-5, -1, 1000, 20], [2**31 - 1, -(2**31), 0, 0]]
)
def test_ends_that_are_none_reach_no_other_memory(ends: list[int]) -> None:
    m, n, k = 90, 48, 64
    a, b = numbers((m, k), "float16", 0), numbers((4, n, k), "float16", 1)
    workload = mfmadsl.grouped_matmul(m, n, k, 4, "float16", "float32")
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch="gfx942"), arch="gfx942")
    c = np.zeros((m, n), np.float32)
    mfmadsl.emulate(kernel, [a, np.array(ends, "int32"), b, c])


@pytest.mark.parametrize("change", [{"split_k": 2}, {"k_waves": 2}, {"persistent": True}])
def test_tilings_that_a_grouped_product_does_not_take(change: dict[str, Any]) -> None:
    workload = mfmadsl.grouped_matmul(128, 128, 512, 4, "float16", "float32")
    tiling = replace(mfmadsl.gemm_tiling(workload, arch="gfx942"), **change)
    with pytest.raises(
        ScheduleError, match="a product of groups, such as experts, takes 1, 1 and False"
    ):
        mfmadsl.gemm_schedule(workload, arch="gfx942", tiling=tiling)


def test_one_element_of_each_matrix() -> None:
    workload = mfmadsl.grouped_matmul(1, 1, 1, 2, "float16", "float32")
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch="gfx942"), arch="gfx942")
    assert not kernel.remarks
    a, b = np.full((1, 1), 3, np.float16), np.array([[[5]], [[7]]], np.float16)
    for ends, result in (([1, 1], 15), ([0, 1], 21)):
        c = np.zeros((1, 1), np.float32)
        mfmadsl.sanitize(kernel, [a, np.array(ends, "int32"), b, c])
        assert c[0, 0] == result


def test_one_group_is_no_grouped_product() -> None:
    with pytest.raises(mfmadsl.ArgumentError, match=r"groups: 1 has .*: use `matmul`"):
        mfmadsl.grouped_matmul(32, 32, 32, 1, "float16", "float32")


def test_instructions_of_many_blocks() -> None:
    workload = mfmadsl.grouped_matmul(32, 32, 32, 2, "float16", "float32")
    with pytest.raises(ScheduleError, match=r"multiplies 4 blocks: .* takes an instruction of one"):
        mfmadsl.gemm_schedule(workload, arch="gfx942", intrinsic="v_mfma_f32_16x16x4_4b_f16")


def test_two_types_that_no_instruction_multiplies() -> None:
    workload = mfmadsl.grouped_matmul(32, 32, 32, 2, "float16", "float32", "float8_e4m3fnuz")
    with pytest.raises(ScheduleError, match="may convert one to the type of the other"):
        mfmadsl.gemm_schedule(workload, arch="gfx942")


@pytest.mark.parametrize(
    ("rows", "count", "index"), [(64, 4, "int32"), (64, 3, "int64"), ("m", 3, "int32")]
)
def test_groups_that_are_counted_otherwise(rows: Any, count: int, index: str) -> None:
    """Over all ends, in wide integers, and of as many rows as a launch brings."""
    m, n, k, groups = te.var("m") if rows == "m" else rows, 32, 64, 4
    a = te.placeholder((m, k), name="A", dtype="float16")
    ends = te.placeholder((groups,), name="ENDS", dtype=index)
    b = te.placeholder((groups, n, k), name="B", dtype="float16")
    e, r = te.reduce_axis((0, count), name="e"), te.reduce_axis((0, k), name="k")

    def counted(i: Any) -> Any:
        return te.sum(tirx.if_then_else(ends[e] <= i, 1, 0), axis=[e])

    group = te.compute((m,), counted, name="group")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(
            a[i, r].astype("float32") * b[group[i], j, r].astype("float32"), axis=[r]
        ),
        name="C",
    )
    with pytest.raises(ScheduleError, match="`group` sums the index of what `C` reads"):
        mfmadsl.gemm_schedule(te.create_prim_func([a, ends, b, c]), arch="gfx942")


def test_other_sums_than_the_instructions() -> None:
    workload = mfmadsl.grouped_matmul(32, 32, 32, 2, "int8", "float32")
    with pytest.raises(ScheduleError, match="the product sums in float32"):
        mfmadsl.gemm_schedule(workload, arch="gfx942")


def test_workgroups_without_rows_end_before_the_loop() -> None:
    """A grid for as many tiles as there may be costs about what the tiles with rows do."""
    m, n, k, groups = 512, 256, 256, 16
    workload = mfmadsl.grouped_matmul(m, n, k, groups, "float16", "float32")
    tiling = next(each for each in gemm_tilings(workload, arch="gfx942") if each.block == (32, 64))
    schedule = mfmadsl.gemm_schedule(workload, arch="gfx942", tiling=tiling)
    kernel = mfmadsl.build(schedule, arch="gfx942")
    a, b = np.zeros((m, k), np.float16), np.zeros((groups, n, k), np.float16)
    c = np.zeros((m, n), np.float32)
    flops = {
        name: mfmadsl.profile(kernel, [a, np.array(ends, "int32"), b, c]).on_chip.flops
        for name, ends in (("one", [m] * groups), ("even", range(32, m + 1, 32)))
    }
    assert flops["one"] == flops["even"] == 2 * m * n * k
