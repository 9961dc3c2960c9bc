"""What is computed on its way into the LDS: before the barrier, under matrix instructions."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tvm import te

import mfmadsl
from mfmadsl.emulator.profiler.main_loop import is_matrix, loop_instructions
from mfmadsl.model.numpy_type import numpy_type
from mfmadsl.schedule.matrix_core.gemm import gemm_tilings

INSTRUCTIONS = {"gfx942": ("mfma_f32_32x32x8_f16", 8), "gfx950": ("mfma_f32_32x32x16_f16", 16)}
"""Each with its k."""

Way = tuple[tuple[int, int], int, tuple[int, int]]
"""A tile, register steps of an iteration, and waves."""

LARGE: Way = ((256, 256), 4, (2, 4))
TWO_AHEAD: Way = ((128, 128), 8, (2, 2))  # loads of two iterations
LATE: Way = ((256, 256), 8, (2, 4))  # of gfx942: loads for which there are no lines
HALVES: Way = ((256, 256), 2, (2, 4))
SHORT: Way = ((64, 64), 4, (2, 2))  # too short an iteration for loads to come in time
MOST_AT_ONCE = 10  # vector instructions between two matrix instructions: two words, and addresses


def built(arch: str, way: Way, shape: tuple[int, int, int]) -> mfmadsl.Kernel:
    block, steps, waves = way
    instruction, k = INSTRUCTIONS[arch]
    tiling = mfmadsl.Tiling(block, steps * k, waves, instruction, 1)
    workload = mfmadsl.quantised_matmul(*shape, "int8", "float16")
    return mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch, tiling=tiling), arch)


def between_the_barriers(kernel: mfmadsl.Kernel) -> list[str]:
    """The instructions of the main loop between each first barrier of an iteration and its second,
    by their names."""
    loop = loop_instructions(kernel.assembly)
    barriers = [place for place, each in enumerate(loop) if each.name == "s_barrier"]
    pairs = zip(barriers[::2], barriers[1::2], strict=True)
    return [each.name for first, second in pairs for each in loop[first:second]]


def arguments(m: int, n: int, k: int) -> list[npt.NDArray[Any]]:
    """A, weights from -128 to 127, their scales, and a result; neighbours differ."""
    a = np.arange(m)[:, None] % 3 + np.arange(k) % 7 - 4
    weights = (np.arange(n)[:, None] * 37 + np.arange(k) * 11) % 256 - 128
    scales = 2.0 ** (np.arange(n) % 5 - 4)
    c = np.full((m, n), np.nan, np.float32)
    return [a.astype(np.float16), weights.astype(np.int8), scales.astype(np.float16), c]


@pytest.mark.parametrize("k", [16, 64, 128, 192, 256, 328])
@pytest.mark.parametrize("way", [LARGE, TWO_AHEAD, HALVES, SHORT])
@pytest.mark.parametrize("arch", INSTRUCTIONS)
def test_it_is_what_numpy_computes(arch: str, way: Way, k: int) -> None:
    """Of one iteration, two and more, and with a short one; tiles end at an edge."""
    m, n = way[0][0] - 6, way[0][1]
    a, weights, scales, c = arguments(m, n, k)
    report = mfmadsl.sanitize(built(arch, way, (m, n, k)), [a, weights, scales, c])
    assert not report.faults
    np.testing.assert_array_equal(c, a.astype(float) @ (weights * scales.astype(float)[:, None]).T)


@pytest.mark.parametrize("k", [64, 192, 200])
def test_where_loads_come_late(k: int) -> None:
    m, n = 250, 256
    a, weights, scales, c = arguments(m, n, k)
    report = mfmadsl.sanitize(built("gfx942", LATE, (m, n, k)), [a, weights, scales, c])
    assert not report.faults
    np.testing.assert_array_equal(c, a.astype(float) @ (weights * scales.astype(float)[:, None]).T)


@pytest.mark.parametrize("way", [LARGE, TWO_AHEAD, HALVES])
@pytest.mark.parametrize("arch", INSTRUCTIONS)
def test_nothing_is_computed_between_the_barriers(arch: str, way: Way) -> None:
    """With the last matrix instructions stand but stores and loads."""
    names = between_the_barriers(built(arch, way, (512, 512, 1024)))
    assert "ds_write_b128" in names
    assert not [name for name in names if "pk_mul" in name or "perm" in name]


def test_a_short_iteration_computes_when_its_loads_are_there() -> None:
    assert "v_pk_mul_f16" in between_the_barriers(built("gfx950", SHORT, (512, 512, 1024)))


def test_it_is_spread_over_the_matrix_instructions() -> None:
    loop = loop_instructions(built("gfx942", LATE, (512, 512, 1024)).assembly)
    runs = [
        sum(each.name.startswith("v_") for each in run)
        for matrix, run in groupby(loop, key=is_matrix)
        if not matrix
    ]
    assert max(runs) <= MOST_AT_ONCE


def test_bytes_become_numbers_two_at_a_time() -> None:
    """Of four bytes of a word two instructions each, and no other one that takes them apart."""
    names = [each.name for each in loop_instructions(built("gfx942", LATE, (512,) * 3).assembly)]
    weights = 256 * 64 // 512  # of a thread in an iteration
    assert sum(name.startswith("v_perm_b32") for name in names) == weights // 2
    assert sum(name.startswith("v_xor_b32") for name in names) == weights // 2
    assert not [name for name in names if name.startswith(("v_lshrrev", "v_and", "v_bfe"))]


@pytest.mark.parametrize("way", [LARGE, LATE, TWO_AHEAD, SHORT])
def test_scales_of_columns_are_loaded_once(way: Way) -> None:
    """They are the same in all iterations."""
    text = built("gfx942", way, (512, 512, 1024)).assembly
    assert "buffer_load_ushort" in text
    loop = loop_instructions(text)
    assert not [each.name for each in loop if each.name.startswith("buffer_load_ushort")]


def test_what_is_computed_is_loaded_first_and_the_rest_is_late() -> None:
    loads = [
        each.name
        for each in loop_instructions(built("gfx942", LATE, (512, 512, 1024)).assembly)
        if each.name.startswith(("buffer_load", "s_barrier"))
    ]
    first = loads.index("s_barrier")
    assert set(loads[:first]) == {"buffer_load_dwordx4"}  # of A
    assert "buffer_load_dwordx2" in loads[first:]  # of the weights


@pytest.mark.parametrize(
    ("dtype", "stored", "sums", "k_step"),
    [
        ("float64", "float32", "float64", 32),
        ("float32", "float16", "float32", 32),
        ("bfloat16", "float32", "float32", 64),
        ("int8", "uint8", "int32", 128),
        ("float16", "int8", "float32", 64),
    ],
)
def test_elements_of_any_size(dtype: str, stored: str, sums: str, k_step: int) -> None:
    """Those larger than a word are computed where they are put."""
    extent, k = 128, 320
    a = te.placeholder((extent, k), dtype, "A")
    w = te.placeholder((extent, k), stored, "W")
    b = te.compute((extent, k), lambda j, r: w[j, r].astype(dtype), "B")
    r = te.reduce_axis((0, k), "r")
    c = te.compute(
        (extent, extent),
        lambda i, j: te.sum(a[i, r].astype(sums) * b[j, r].astype(sums), axis=[r]),
        "C",
    )
    function = te.create_prim_func([a, w, c])
    found = gemm_tilings(function, arch="gfx942")[0]
    tiling = replace(found, block=(128, 128), waves=(2, 2), k_step=k_step, stages=1, split_k=1,
                     k_waves=1, one_launch=False)  # fmt: skip
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(function, arch="gfx942", tiling=tiling), "gfx942")
    assert not kernel.remarks
    left = np.arange(extent)[:, None] % 3 + np.arange(k) % 7
    right = np.arange(extent)[:, None] % 5 + np.arange(k) % 11
    result = np.zeros((extent, extent), sums)
    arrays = [left.astype(numpy_type(dtype)), right.astype(stored), result]
    assert not mfmadsl.sanitize(kernel, arrays).faults
    np.testing.assert_array_equal(result, left @ right.T)
