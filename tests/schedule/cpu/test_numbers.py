"""What a product on a CPU is: NumPy's, for every micro-kernel, layout, shape and tiling."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfmadsl import CpuTiling
from mfmadsl.host.cpu import host_cpu
from mfmadsl.language import microkernels
from mfmadsl.model import Cpu
from tests.cases import drawn
from tests.schedule.cpu.workloads import (
    HASWELL,
    MULTIPLIES_BYTES,
    RUN_HERE,
    SSE2,
    Matmul,
    around,
    check,
    kernel_of,
    needs_bytes,
    tiling_of,
)

TYPES = ["float32", "float64", *(["uint8"] if MULTIPLIES_BYTES else [])]
FIRST_TYPES = [*TYPES, *(["int8"] if MULTIPLIES_BYTES else [])]
FLAGS = [(a, b, c) for a, b, c in product((True, False), repeat=3)]
LAYOUTS = {
    "".join(c if f else c.lower() for c, f in zip("ABC", fs, strict=True)): fs for fs in FLAGS
}


def test_a_position_names_itself() -> None:
    """A kernel that takes one element for another is found out."""
    for dtype in TYPES:
        a, b, _ = Matmul(24, 33, 40, dtype).operands()
        for each in (a, b):
            assert len(np.unique(each, axis=0)) == each.shape[0]
            assert len(np.unique(each, axis=1).T) == each.shape[1]


@pytest.mark.parametrize(("name", "by"), drawn(product(RUN_HERE, (-1, 1)), 16))
def test_each_microkernel_that_this_cpu_runs(name: str, by: int) -> None:
    check(around(Matmul(1, 1, 1), name, by), name, threads=2)


@pytest.mark.parametrize(
    ("cpu", "layout", "dtype"),
    drawn(product([HASWELL, SSE2], ["ABC", "abc", "aBC", "Abc"], ["float32", "float64"]), 6),
)
def test_code_for_a_more_modest_cpu_runs_here_too(dtype: str, layout: str, cpu: Cpu) -> None:
    kernel = check(Matmul(29, 43, 31, dtype, LAYOUTS[layout]), cpu=cpu)
    assert "zmm" not in kernel.assembly
    assert ("ymm" in kernel.assembly) == (cpu is HASWELL)


@pytest.mark.parametrize(
    ("layout", "dtype"),
    drawn(product(LAYOUTS, [*TYPES, *(["int8"] if MULTIPLIES_BYTES else [])]), 8),
)
def test_each_layout(dtype: str, layout: str) -> None:
    """Of int8 times uint8 the instruction multiplies the second by the first."""
    check(Matmul(37, 53, 41, dtype, LAYOUTS[layout]))


@pytest.mark.parametrize("layout", ["ABC", "AbC", "abc"])
@pytest.mark.parametrize("shared", ["", "A", "B"])
def test_batches(shared: str, layout: str) -> None:
    check(Matmul(15, 33, 33, "float32", LAYOUTS[layout], batches=3, shared=shared))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "shape",
    [
        (1, 1, 1), (1, 1, 7), (1, 65, 9), (65, 1, 9), (13, 17, 1), (1, 47, 32), (2, 3, 5),
        (31, 61, 29), (7, 127, 3), (97, 11, 64), (32, 64, 48),
    ],
)  # fmt: skip
def test_shapes(shape: tuple[int, int, int], dtype: str) -> None:
    check(Matmul(*shape, dtype))


@pytest.mark.parametrize(
    ("layout", "shape", "dtype"),
    drawn(
        product(
            ["ABC", "abC", "aBc"], [(1, 47, 32), (47, 1, 32), (17, 19, 1)], [TYPES[0], TYPES[-1]]
        ),
        8,
    ),
)
def test_an_extent_of_one_in_each_layout(
    dtype: str, shape: tuple[int, int, int], layout: str
) -> None:
    check(Matmul(*shape, dtype, LAYOUTS[layout]))


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("batches", [0, 3])
def test_threads_get_what_one_gets(batches: int, threads: int) -> None:
    check(Matmul(130, 200, 33, batches=batches), threads=threads)


@pytest.mark.parametrize(
    ("rows", "columns", "parallel", "pack_a"),
    drawn(
        [
            (*chunk, parallel, pack_a)
            for chunk in [(1, 1), (3, 2), (2, 5), (40, 40)]
            for parallel in (True, False)
            for pack_a in (True, False)
        ],
        8,
    ),
)
def test_tilings_that_divide_nothing(rows: int, columns: int, parallel: bool, pack_a: bool) -> None:
    name = "avx2_f32_4x8" if "avx2_f32_4x8" in RUN_HERE else "sse2_f32_4x8"
    tiling = tiling_of(name, rows, columns, parallel=parallel, pack_a=pack_a)
    check(Matmul(29, 45, 23), tiling=tiling)
    check(Matmul(29, 45, 23, rows=(False, True, True)), tiling=tiling)


def tilings(name: str) -> st.SearchStrategy[CpuTiling | None]:
    return st.none() | st.builds(
        tiling_of, st.just(name), st.integers(1, 5), st.integers(1, 5),
        parallel=st.booleans(), pack_a=st.booleans(),
    )  # fmt: skip


@settings(max_examples=10)
@given(data=st.data())
def test_any_shape_layout_and_tiling(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(RUN_HERE))
    tile = microkernels()[name]
    m, n, k = (data.draw(st.integers(1, 3 * extent + 2)) for extent in (tile.m, tile.n, tile.k))
    rows = data.draw(st.sampled_from(FLAGS))
    batches = data.draw(st.integers(0, 3))
    shared = data.draw(st.sampled_from(["", "A", "B"])) if batches else ""
    workload = Matmul(m, n, k, tile.a.type.dtype, rows, batches, shared)
    check(workload, name, tiling=data.draw(tilings(name)), threads=data.draw(st.integers(1, 5)))


@settings(max_examples=8)
@given(
    extents=st.tuples(*[st.integers(1, 90)] * 3), rows=st.sampled_from(FLAGS),
    dtype=st.sampled_from(TYPES), threads=st.integers(1, 5),
    cpu=st.sampled_from([None, HASWELL, SSE2]),
)  # fmt: skip
def test_any_product_as_it_is_cut_by_default(
    extents: tuple[int, int, int], rows: tuple[bool, bool, bool], dtype: str, threads: int,
    cpu: Cpu | None,
) -> None:  # fmt: skip
    cpu = cpu if dtype.startswith("float") else None
    check(Matmul(*extents, dtype, rows), cpu=cpu, threads=threads)


@needs_bytes
def test_the_largest_sums_of_bytes_do_not_saturate() -> None:
    """All bytes as large as they can be, and of one sign, for each sign of B."""
    workload = Matmul(9, 33, 515, "uint8")
    kernel = kernel_of(workload)
    for sign in (127, -128):
        a, b, c = workload.operands()
        a[:], b[:] = 255, sign
        kernel(a, b, c)
        workload.assert_right(a, b, c)


def test_this_cpu_runs_the_most_modest() -> None:
    assert {"sse2_f32_6x8", "sse2_f64_6x4"} <= set(RUN_HERE)
    assert not host_cpu().missing(["sse2"])
