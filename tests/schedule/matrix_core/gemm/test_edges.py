"""Workloads at the edges of what the passes take: right under the sanitizer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tvm import te, tirx
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.schedule import ScheduleError, Tiling
from tests.schedule.random_workloads import RandomWorkload, check

SUMS = {"int8": "int32", "float64": "float64"}


def product(
    a: tuple[Any, ...], b: tuple[Any, ...], c: tuple[Any, ...], k: Any, dtype: str,
    left: Callable[..., Any], right: Callable[..., Any],
) -> PrimFunc:  # fmt: skip
    """C at its places is the sum over k of elements of A and B."""
    pairs = zip("AB", (a, b), strict=True)
    first, second = (te.placeholder(shape, name=n, dtype=dtype) for n, shape in pairs)
    r, out = te.reduce_axis((0, k), name="k"), SUMS.get(dtype, "float32")
    result = te.compute(
        c,
        lambda *p: te.sum(
            left(first, *p, r).astype(out) * right(second, *p, r).astype(out), axis=[r]
        ),
        name="C",
    )
    return te.create_prim_func([first, second, result])


def plain(m: Any, n: Any, k: Any, dtype: str = "float16") -> PrimFunc:
    return product(
        (m, k), (n, k), (m, n), k, dtype, lambda x, i, j, r: x[i, r], lambda x, i, j, r: x[j, r]
    )


def is_right(
    function: PrimFunc, arch: str = "gfx942", tiling: Tiling | None = None, **symbols: int
) -> bool:
    def scheduled(workload: PrimFunc) -> Any:
        return mfmadsl.gemm_schedule(workload, arch=arch, tiling=tiling)

    return check(RandomWorkload(0, function, symbols, (), True), scheduled, arch)


@pytest.mark.parametrize("k", [62, 126, 254])
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_depths_that_are_no_whole_words_of_rows(arch: str, dtype: str, k: int) -> None:
    assert is_right(plain(33, 17, k, dtype), arch)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx950"])
@pytest.mark.parametrize("k_step", [64, 128])
@pytest.mark.parametrize(("m", "k"), [(1, 383), (65, 385), (130, 511)])
def test_rows_of_an_odd_length(arch: str, k_step: int, m: int, k: int) -> None:
    """A lane has the word behind its neighbours of the next lane, but for the last of a row."""
    workload = plain(m, 33, k)
    tiling = replace(mfmadsl.gemm_tiling(workload, arch=arch), block=(64, 64), waves=(2, 2),
                     k_step=k_step, stages=1, k_waves=1, split_k=1)  # fmt: skip
    assert is_right(workload, arch, tiling)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize(("n", "k"), [(33, 64), (97, 200), (63, 385), (1, 65)])
def test_columns_of_an_odd_number_of_rows_of_k(arch: str, n: int, k: int) -> None:
    """The next lane may be past the end of a row, where it loads nothing."""
    workload = product(
        (17, k), (k, n), (17, n), k, "float16", lambda x, i, j, r: x[i, r],
        lambda x, i, j, r: x[r, j],
    )  # fmt: skip
    for block in ((16, 32), (32, 64)):
        tiling = replace(mfmadsl.gemm_tiling(workload, arch=arch), block=block, waves=(1, 2),
                         k_step=64, stages=1, k_waves=1, split_k=1,
                         instruction="mfma_f32_16x16x16_f16", k_pack=2)  # fmt: skip
        assert is_right(workload, arch, tiling)


def test_lanes_ask_the_next_one_for_words_of_an_odd_row() -> None:
    def listing(k: int) -> str:
        schedule = mfmadsl.gemm_schedule(plain(130, 130, k), arch="gfx942")
        return str(mfmadsl.build(schedule, arch="gfx942").assembly)

    assert "row_shl:1" in listing(1025)
    assert "row_shl:1" not in listing(1026)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_a_long_sum_of_few_rows(arch: str) -> None:
    assert is_right(plain(3, 5, 4094, "int8"), arch)


def test_several_places_of_one_element() -> None:
    """A window of one element: what pads the sum names it several times, to be zero there."""
    x = te.placeholder((1, 9, 9, 1), name="X", dtype="float16")
    w = te.placeholder((1, 1, 1, 1), name="W", dtype="float16")
    h, v, c = (te.reduce_axis((0, 1), name=name) for name in ("rh", "rw", "rc"))
    out = te.compute(
        (1, 4, 4, 1),
        lambda z, i, j, f: te.sum(
            x[z, 2 * i + h, 2 * j + v, c].astype("float32") * w[f, h, v, c].astype("float32"),
            axis=[h, v, c],
        ),
        name="C",
    )
    assert is_right(te.create_prim_func([x, w, out]))


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_rows_counted_down(arch: str) -> None:
    assert is_right(
        product((64, 40), (31, 40), (64, 31), 40, "int8",
                lambda x, i, j, r: x[63 - i, r], lambda x, i, j, r: x[j, r]), arch,
    )  # fmt: skip


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("k", [1, 5, 64])
def test_rows_from_before_the_first(arch: str, k: int) -> None:
    a, b = (te.placeholder((n, k), name=name, dtype="int8") for n, name in ((40, "A"), (9, "B")))
    zero = tirx.const(0, "int8")
    rows = te.compute(
        (40, k), lambda i, r: tirx.if_then_else(i >= 1, a[i - 1, r], zero), name="padded"
    )
    r = te.reduce_axis((0, k), name="k")
    c = te.compute(
        (40, 9),
        lambda i, j: te.sum(rows[i, r].astype("int32") * b[j, r].astype("int32"), axis=[r]),
        name="C",
    )
    assert is_right(te.create_prim_func([a, b, c]), arch)


@pytest.mark.parametrize("rows", [2, 5, 32, 40])
def test_batches_of_an_unknown_number_with_one_second_factor(rows: int) -> None:
    z = te.var("z")
    function = product(
        (z, rows, 64), (64, 24), (z, rows, 24), 64, "float16",
        lambda x, z, i, j, r: x[z, i, r], lambda x, z, i, j, r: x[r, j],
    )  # fmt: skip
    assert is_right(function, z=3)


def test_gathered_rows_of_bytes() -> None:
    x = te.placeholder((33, 5), name="A", dtype="int8")
    b = te.placeholder((7, 5), name="B", dtype="int8")
    places = te.placeholder((33,), name="places", dtype="int32")
    r = te.reduce_axis((0, 5), name="k")
    c = te.compute(
        (33, 7),
        lambda i, j: te.sum(x[places[i], r].astype("int32") * b[j, r].astype("int32"), axis=[r]),
        name="C",
    )
    assert is_right(te.create_prim_func([x, b, places, c]))


@pytest.mark.parametrize("waves", [(1, 1), (2, 2)])
def test_a_tile_with_less_to_copy_than_it_has_threads(waves: tuple[int, int]) -> None:
    tiling = Tiling((32, 32), 8, waves, "mfma_f32_16x16x4_f32", 1)
    assert is_right(plain(33, 40, 31, "float32"), "gfx950", tiling)


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("persistent", [False, True])
def test_unknown_rows_in_one_column_of_tiles(group: int, persistent: bool) -> None:
    tiling = Tiling((32, 32), 32, (1, 1), "mfma_f32_32x32x8_f16", 1, persistent=persistent,
                    group=group)  # fmt: skip
    assert is_right(plain(te.var("m"), 5, 40), "gfx942", tiling, m=70)


@pytest.mark.parametrize("stages", [1, 2])
def test_a_tiling_of_an_unknown_sum(stages: int) -> None:
    tiling = Tiling((32, 32), 32, (1, 1), "mfma_f32_32x32x8_f16", 1, stages=stages)
    assert is_right(plain(33, 40, te.var("k")), "gfx942", tiling, k=160)
    with pytest.raises(ScheduleError, match="split_k=2 needs K to be known"):
        mfmadsl.gemm_schedule(
            plain(33, 40, te.var("k")),
            tiling=Tiling((32, 32), 32, (1, 1), "mfma_f32_32x32x8_f16", 1, split_k=2),
        )


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8"])
def test_an_unknown_sum_is_not_split(dtype: str) -> None:
    assert mfmadsl.gemm_tiling(plain(3, 3, te.var("k"), dtype)).split_k == 1


def test_rows_and_sum_of_unknown_length() -> None:
    m, k = te.var("m"), te.var("k")
    function = product(
        (m, k), (k, 17), (m, 17), k, "bfloat16", lambda x, i, j, r: x[i, r],
        lambda x, i, j, r: x[r, j],
    )  # fmt: skip
    assert is_right(function, m=33, k=160)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("k", [192, 257, None])
def test_sums_that_go_backwards(arch: str, columns: bool, k: int | None) -> None:
    """Turns of the loop go down in memory, where a scalar offset has no sign."""
    m, n, extent = 33, 16, te.var("k") if k is None else k

    def left(x: Any, i: Any, j: Any, r: Any) -> Any:
        return x[extent - 1 - r, i] if columns else x[i, extent - 1 - r]

    a = (extent, m) if columns else (m, extent)
    function = product(a, (n, extent), (m, n), extent, "float16", left, lambda x, i, j, r: x[j, r])
    assert is_right(function, arch) if k else is_right(function, arch, k=257)


@pytest.mark.parametrize("extents", [(72, 16, 131), (72, 16, 128), (64, 16, 131)], ids=str)
@pytest.mark.parametrize("pipelined", [True, False])
def test_a_factor_behind_a_mask_in_memory(
    extents: tuple[int, int, int], pipelined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TVM asks the mask and the edges in one condition, all of which is evaluated."""
    m, n, k = extents
    a = te.placeholder((m, k), name="A", dtype="float16")
    mask = te.placeholder((m, k), name="mask", dtype="int8")
    b = te.placeholder((n, k), name="B", dtype="float16")
    zero = tirx.const(0, "float16")
    masked = te.compute(
        (m, k), lambda i, r: tirx.if_then_else(mask[i, r] > 0, a[i, r], zero), name="masked"
    )
    r = te.reduce_axis((0, k), name="k")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(masked[i, r].astype("float32") * b[j, r].astype("float32"), axis=[r]),
        name="C",
    )
    if not pipelined:
        monkeypatch.setattr("mfmadsl.passes.main_loop.pipeline.PIPELINE", "none")
    assert is_right(te.create_prim_func([a, mask, b, c]))


def with_masked_rows(mask: str, columns: bool = False) -> PrimFunc:
    """Of 72 rows of A those that the mask names, or all."""
    m, n, k = 72, 16, 256
    a = te.placeholder((k, m) if columns else (m, k), name="A", dtype="float16")
    b = te.placeholder((n, k), name="B", dtype="float16")
    r, zero = te.reduce_axis((0, k), name="k"), tirx.const(0, "float16")

    def element(i: Any, r: Any) -> Any:
        value = a[r, i] if columns else a[i, r]
        if mask == "all":
            return value
        wanted = i < 10 if mask == "i < 10" else tirx.floormod(i, 3).equal(0)
        return tirx.if_then_else(wanted, value, zero)

    masked = te.compute((m, k), element, name="masked")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(masked[i, r].astype("float32") * b[j, r].astype("float32"), axis=[r]),
        name="C",
    )
    return te.create_prim_func([a, b, c])


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("mask", ["i < 10", "i % 3 == 0"])
def test_rows_behind_a_mask_of_their_own(arch: str, columns: bool, mask: str) -> None:
    """TVM makes one condition of that and of the edge, past which anything may be read."""
    assert is_right(with_masked_rows(mask, columns), arch)


def test_only_what_has_no_mask_has_edges_past_which_anything_may_be_read() -> None:
    told = {
        mask: "mfmadsl.edges" in mfmadsl.gemm_schedule(with_masked_rows(mask)).mod.script()
        for mask in ("all", "i < 10", "i % 3 == 0")
    }
    assert told == {"all": True, "i < 10": False, "i % 3 == 0": False}


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32"])
def test_rows_gathered_by_what_is_read(dtype: str) -> None:
    """Where an index is known to be is no reason to look it up ahead of the loop."""
    m, n, k = 33, 16, 256
    a = te.placeholder((128, k), name="A", dtype="float16")
    index = te.placeholder((m,), name="index", dtype=dtype)
    b = te.placeholder((n, k), name="B", dtype="float16")
    r = te.reduce_axis((0, k), name="k")

    def row(i: Any) -> Any:
        return tirx.floormod(index[i].astype("int32"), 128)

    c = te.compute(
        (m, n),
        lambda i, j: te.sum(a[row(i), r].astype("float32") * b[j, r].astype("float32"), axis=[r]),
        name="C",
    )
    assert is_right(te.create_prim_func([a, index, b, c]))


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize(("rows", "k"), [(129, 1032), (33, 144)])
def test_what_lies_behind_a_shorter_k_at_the_end_of_memory(arch: str, rows: int, k: int) -> None:
    """Rows are longer than K, and the last word of the buffer is only half one: a chunk of K that
    is wholly past K, and ends there, is no part of the sum."""
    function = product(
        (rows, k), (rows, k + 3), (rows, rows), k, "float16",
        lambda x, i, j, r: x[i, r], lambda x, i, j, r: x[j, r],
    )  # fmt: skip
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(function, arch=arch), arch)
    b = np.ones((rows, k + 3), np.float16)
    b[:, k:] = np.nan
    result = np.full((rows, rows), 99, np.float32)
    mfmadsl.sanitize(kernel, [np.ones((rows, k), np.float16), b, result])
    np.testing.assert_array_equal(result, k)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_a_matrix_of_zeros_is_multiplied(arch: str) -> None:
    """Its one row is that before the first: nothing of it is fetched."""
    x, b = (
        te.placeholder((n, 520), name=name, dtype="float16") for n, name in ((1, "X"), (40, "B"))
    )
    zero = tirx.const(0, "float16")
    a = te.compute((1, 520), lambda i, j: tirx.if_then_else(i >= 1, x[i - 1, j], zero), name="A")
    r = te.reduce_axis((0, 520), name="k")
    c = te.compute(
        (1, 40),
        lambda i, j: te.sum(a[i, r].astype("float32") * b[j, r].astype("float32"), axis=[r]),
        name="C",
    )
    assert is_right(te.create_prim_func([x, b, c]), arch)
