"""How a product is cut by default, for caches and threads that are given."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te

import mfmadsl
from mfmadsl.host.caches import Caches
from mfmadsl.language import find_microkernel, microkernels
from mfmadsl.model import Microkernel
from mfmadsl.model.cpu import cpu
from mfmadsl.schedule.cpu.tiling import (
    CpuShape,
    CpuTiling,
    check_cpu_tiling,
    default_cpu_tiling,
)
from tests.schedule.cpu.workloads import Matmul, positions

AVX512 = [m for name, m in microkernels().items() if name.startswith("avx512_f32")]
CACHES = Caches(32 << 10, 1 << 20)
MESH = Caches(48 << 10, 2 << 20, 4)
"""Of an Intel Xeon, whose third cache is slow."""


def shape(m: int, n: int, k: int, batches: int = 1) -> CpuShape:
    return CpuShape(batches, m, n, k, 4 * k)


def tiled(
    of: CpuShape, threads: int = 1, kernels: list[Microkernel] = AVX512, caches: Caches = CACHES
) -> CpuTiling:
    return default_cpu_tiling(of, kernels, caches, threads)


extents = st.integers(1, 3000)


@settings(max_examples=40)
@given(
    m=extents, n=extents, k=extents, batches=st.integers(1, 9), threads=st.integers(1, 64),
    kernels=st.lists(st.sampled_from(list(microkernels().values())), min_size=1, max_size=4),
)  # fmt: skip
def test_a_tiling_is_legal_whatever_the_product(
    m: int, n: int, k: int, batches: int, threads: int, kernels: list[Microkernel]
) -> None:
    of = shape(m, n, k, batches)
    found = tiled(of, threads, kernels)
    check_cpu_tiling(found)
    kernel = find_microkernel(found.microkernel)
    assert kernel in kernels
    assert (found.rows - 1) * kernel.m < m
    assert (found.columns - 1) * kernel.n < n
    assert not (found.parallel and threads == 1)


@settings(max_examples=20)
@given(m=extents, n=extents, k=extents, threads=st.integers(1, 8))
def test_panels_fit_the_second_cache_twice(m: int, n: int, k: int, threads: int) -> None:
    """Or there is one, which is as small as can be."""
    found = tiled(shape(m, n, k), threads)
    panel = 4 * k * find_microkernel(found.microkernel).n
    assert found.columns == 1 or found.columns * panel <= 2 * CACHES.second


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "extents",
    [(1024, 1024, 2048), (1024, 3072, 1024), (1570, 1186, 1439), (803, 1442, 685), (2048,) * 3],
)
def test_panels_that_a_slow_cache_would_bring_stay_in_the_second(
    extents: tuple[int, int, int], threads: int
) -> None:
    """Each is read for every row of tiles; from the third cache that took half of the time."""
    found = tiled(shape(*extents), threads, caches=MESH)
    panel = 4 * extents[2] * find_microkernel(found.microkernel).n
    assert found.columns * panel <= MESH.second // 2


@pytest.mark.parametrize(("caches", "columns"), [(CACHES, 8), (MESH, 4)])
def test_chunks_are_as_wide_as_the_third_cache_is_fast(caches: Caches, columns: int) -> None:
    """As measured: on a Zen 4, and on an Emerald Rapids 168 GFLOP/s, where 16 came to 101."""
    found = tiled(shape(1024, 1024, 2048), caches=caches)
    assert found.columns * find_microkernel(found.microkernel).n == 32 * columns


def test_a_row_is_multiplied_by_a_row() -> None:
    assert find_microkernel(tiled(shape(1, 512, 512)).microkernel).m == 1


def test_few_columns_take_narrow_tiles() -> None:
    assert find_microkernel(tiled(shape(512, 16, 512)).microkernel).n == 16


def test_what_is_small_wakes_no_threads_and_what_is_large_does() -> None:
    assert not tiled(shape(16, 32, 16), 8).parallel
    large = shape(1024, 1024, 1024)
    found = tiled(large, 8)
    assert found.parallel
    assert large.chunks(find_microkernel(found.microkernel), found) >= 8


def test_batches_are_chunks_as_well() -> None:
    kernel = find_microkernel("avx512_f32_8x32")
    tiling = CpuTiling(kernel.name, 2, 1)
    assert shape(17, 33, 4).chunks(kernel, tiling) == 2 * 2
    assert shape(16, 32, 4, 3).chunks(kernel, tiling) == 3


@pytest.mark.parametrize(("row_bytes", "packs"), [(4096, True), (4096 + 64, False), (None, False)])
def test_rows_that_share_the_sets_of_a_cache_are_packed(row_bytes: int | None, packs: bool) -> None:
    of = CpuShape(1, 1024, 1024, 1024, row_bytes)
    twelve = [find_microkernel("avx512_f32_12x32")]
    assert tiled(of, kernels=twelve).pack_a == packs


def test_a_first_cache_of_twelve_ways_holds_twelve_rows() -> None:
    of = CpuShape(1, 1024, 1024, 1024, 4096)
    for name, packs in (("avx512_f32_12x32", False), ("avx512_f32_14x32", True)):
        assert tiled(of, kernels=[find_microkernel(name)], caches=MESH).pack_a == packs


@pytest.mark.parametrize(
    ("rows", "computed", "expected"),
    [(True, False, 4 * 30), (False, False, None), (True, True, None)],
)
def test_rows_of_a_lie_in_memory_where_they_are_read_as_they_are(
    rows: bool, computed: bool, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And along k; what is computed is packed in any case."""
    shapes: list[CpuShape] = []

    def chosen(of: CpuShape, *others: Any) -> CpuTiling:
        shapes.append(of)
        return default_cpu_tiling(of, *others)

    monkeypatch.setattr("mfmadsl.schedule.cpu.choice.default_cpu_tiling", chosen)
    a = te.placeholder((40, 30) if rows else (30, 40), name="A")
    b, r = te.placeholder((30, 70), name="B"), te.reduce_axis((0, 30), name="r")
    factor = te.compute(a.shape, lambda *place: 2.0 * a(*place), name="twice") if computed else a

    def element(i: Any, j: Any) -> Any:
        return te.sum((factor[i, r] if rows else factor[r, i]) * b[r, j], axis=[r])

    c = te.compute((40, 70), element, name="C")
    mfmadsl.cpu_gemm_tiling(te.create_prim_func([a, b, c]))
    assert shapes == [CpuShape(1, 40, 70, 30, expected)]


@pytest.mark.parametrize(("m", "k", "packed"), [(24, 8, False), (24, 7, True), (25, 8, True)])
def test_rows_of_a_that_make_no_whole_tiles_are_packed(m: int, k: int, packed: bool) -> None:
    """A step is four k of eight rows."""
    function = Matmul(m, 33, k, "uint8").function()
    tiling = CpuTiling("vnni_u8i8_8x32", 1, 1)
    schedule = mfmadsl.cpu_gemm_schedule(function, None, cpu("cascadelake"), tiling)
    allocated = re.findall(r"(\w+) = T.sblock_alloc_buffer", schedule.mod.script())
    assert any(re.fullmatch(r"A_\w+_global", name) for name in allocated) == packed


def test_it_is_the_tiling_that_the_schedule_takes() -> None:
    function = Matmul(40, 70, 30).function()
    tiling = mfmadsl.cpu_gemm_tiling(function, threads=2)
    default = mfmadsl.cpu_gemm_schedule(function, threads=2)
    asked = mfmadsl.cpu_gemm_schedule(function, tiling=tiling)
    assert default.mod.script() == asked.mod.script()


def test_a_microkernel_that_is_asked_for_is_taken() -> None:
    function = Matmul(40, 70, 30).function()
    for given_as in ("sse2_f32_4x8", find_microkernel("sse2_f32_4x8")):
        assert mfmadsl.cpu_gemm_tiling(function, given_as).microkernel == "sse2_f32_4x8"


def test_positions_are_no_uniform_data() -> None:
    assert len(set(positions((7, 11), "float32").ravel().tolist())) == 77
