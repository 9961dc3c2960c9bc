"""Grouped products: each row is multiplied by the matrix of its group, under the sanitizer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tvm import te, tirx

import mfmadsl
from mfmadsl.gemm.quantised import random_weights, weights_of
from mfmadsl.schedule import Case, ScheduleError, Tiling
from mfmadsl.schedule.matrix_core.gemm import gemm_tilings
from mfmadsl.schedule.product.grouped import group_of_rows
from mfmadsl.schedule.workload.quantised import FORMATS
from tests.cases import FIRST, drawn
from tests.schedule.matrix_core.gemm.workloads import Array
from tests.schedule.matrix_core.test_mx_output import quantised
from tests.schedule.matrix_core.test_pairs import gate_of

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


SMALL = Tiling((16, 64), 64, (1, 1), "mfma_f32_16x16x16_f16", 2)
LARGE = Tiling((64, 64), 64, (2, 1), "mfma_f32_32x32x8_f16", 2)
CASES = [Case(SMALL, (90,)), Case(LARGE)]


@pytest.mark.parametrize("form", ["plain", "tokens", "gptq", "a gate in an MX format"])
def test_as_many_rows_as_a_launch_brings(form: str) -> None:
    """One kernel of each tiling for 0, 1, and numbers of rows about the border of cases."""
    n, k, groups, rows = 128, 64, 3, te.var("m")
    tokens = te.var("tokens") if form == "tokens" else None
    generator = np.random.default_rng(3)
    if form == "gptq":
        each = [random_weights(generator, FORMATS[form], n, k, 32, "float16") for _ in range(3)]
        right = np.stack([weights_of(FORMATS[form], own, 32, "float16") for own in each])
        weights = [np.stack(parts) for parts in zip(*each, strict=True)]
        workload = mfmadsl.quantised_matmul(rows, n, k, form, group=32, experts=groups)
    else:
        right = numbers((groups, n, k), "float16", 1)
        weights = [right]
        workload = mfmadsl.grouped_matmul(rows, n, k, groups, "float16", "float32", tokens=tokens)
    if form.startswith("a gate"):
        workload = mfmadsl.mx_output(mfmadsl.gated(workload, "relu"), "fp8")
    schedule = mfmadsl.gemm_schedule(workload, arch="gfx942", tiling=CASES)
    kernel = mfmadsl.build(schedule, arch="gfx942")
    assert [str(each.condition) for each in kernel.chain()] == ["int(m <= 90)", "int(90 < m)"]
    for m in (0, 1, 90, 91, 200):
        given = numbers((m if tokens is None else 31, k), "float16", 0)
        which = generator.integers(0, 31, m).astype("int32") if tokens is not None else np.arange(m)
        ends = np.array([m // 3, m // 3, 0], "int32")
        arrays = [given, *([] if tokens is None else [which]), ends, *weights]
        exact = expected(given[which], right, ends)
        if form.startswith("a gate"):
            elements, scales = np.zeros((m, n // 2), "uint8"), np.zeros((m, n // 64), "uint8")
            arrays += [elements.view("float8_e4m3fn"), scales]
            wanted = quantised(gate_of(exact, "relu"), "fp8")
            mfmadsl.sanitize(kernel, arrays)
            np.testing.assert_array_equal(elements, wanted[0].view("uint8"))
            np.testing.assert_array_equal(scales, wanted[1])
        else:
            arrays.append(c := np.full((m, n), np.nan, np.float32))
            mfmadsl.sanitize(kernel, arrays)
            np.testing.assert_allclose(c, exact, rtol=1e-6, atol=0 if form != "gptq" else 1e-4)
        assert len(kernel.launches(arrays)) == (m > 0)


def test_cases_of_groups() -> None:
    """Chosen are larger tiles for more rows; cases that are asked for need a symbol."""
    workload = mfmadsl.grouped_matmul(te.var("m"), 512, 512, 2, "float16", "float32")
    cases = mfmadsl.gemm_cases(workload, arch="gfx942")
    assert len(cases) > 1
    assert cases[0].tiling.block[0] < cases[-1].tiling.block[0]
    assert mfmadsl.gemm_tiling(workload, arch="gfx942") in gemm_tilings(workload, arch="gfx942")
    known = mfmadsl.grouped_matmul(128, 512, 512, 2, "float16", "float32")
    with pytest.raises(ScheduleError, match="2 cases are for rows that are a symbol: of 128 rows"):
        mfmadsl.gemm_schedule(known, arch="gfx942", tiling=CASES)


def test_symbols_that_groups_do_not_have() -> None:
    with pytest.raises(mfmadsl.ArgumentError, match="m: `m` is a symbol of int64; rows of groups"):
        mfmadsl.grouped_matmul(te.var("m", "int64"), 32, 64, 4, "float16", "float32")
    with pytest.raises(mfmadsl.ArgumentError, match=r"tokens: is an integer, not 2\.5"):
        mfmadsl.grouped_matmul(8, 32, 64, 4, "float16", "float32", tokens=2.5)  # type: ignore[arg-type]
    with pytest.raises(ScheduleError, match="a number of columns or of k that is a symbol"):
        mfmadsl.gemm_schedule(of_groups(64, te.var("n"), "int32"), arch="gfx942")
    with pytest.raises(ScheduleError, match="`m` rows, of int64: give the symbol 32 bits"):
        mfmadsl.gemm_schedule(of_groups(te.var("m", "int64"), 32, "int32"), arch="gfx942")


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
    rows = te.var("m") if rng.random() < 0.4 else m
    given = te.var("t") if tokens is not None and rng.random() < 0.5 else tokens
    workload = mfmadsl.grouped_matmul(rows, n, k, groups, "float16", "float32", tokens=given)
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


def of_groups(rows: Any, n: Any, index: str, count: int = 3) -> Any:
    """A product of four groups, whose rows are counted by so many ends."""
    k, groups = 64, 4
    a = te.placeholder((rows, k), name="A", dtype="float16")
    ends = te.placeholder((groups,), name="ENDS", dtype=index)
    b = te.placeholder((groups, n, k), name="B", dtype="float16")
    e, r = te.reduce_axis((0, count), name="e"), te.reduce_axis((0, k), name="k")

    def counted(i: Any) -> Any:
        return te.sum(tirx.if_then_else(ends[e] <= i, 1, 0), axis=[e])

    group = te.compute((rows,), counted, name="group")
    c = te.compute(
        (rows, n),
        lambda i, j: te.sum(
            a[i, r].astype("float32") * b[group[i], j, r].astype("float32"), axis=[r]
        ),
        name="C",
    )
    return te.create_prim_func([a, ends, b, c])


@pytest.mark.parametrize(("count", "index"), [(4, "int32"), (3, "int64")])
def test_groups_that_are_counted_otherwise(count: int, index: str) -> None:
    """Over all ends, and in wide integers."""
    with pytest.raises(ScheduleError, match="`group` sums the index of what `C` reads"):
        mfmadsl.gemm_schedule(of_groups(64, 32, index, count), arch="gfx942")


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
