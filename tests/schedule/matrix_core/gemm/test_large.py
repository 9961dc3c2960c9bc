"""Products whose matrices have 2^31 elements and more are as fast as others, and as right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mfmadsl import Gemm
from tests.emulator.far_memory import FarMemory

PLAIN = {"block": (128, 16), "waves": (4, 1), "stages": 1, "split_k": 1, "k_waves": 1}
PLAIN |= {"persistent": False}
DIRECT = {"block": (256, 16), "waves": (4, 1), "stages": 3, "split_k": 1, "k_waves": 1}
LAST = range(-16, 0)


def check(gemm: Gemm, groups: Sequence[int]) -> Any:
    """The rows that some workgroups compute are right, wherever they read anything else: zeros."""
    kernel = gemm.build()
    assert kernel.remarks == ()
    assert "buffer_load_dword" in kernel.assembly
    memory = FarMemory(kernel)
    rows = memory.run(groups)
    a, b, c = memory.arrays
    generator = np.random.default_rng(3)
    left = a.T if gemm.a_transposed else a
    right = b.T if gemm.b_transposed else b
    left[rows] = generator.integers(-3, 4, (len(rows), gemm.k))
    right[...] = generator.integers(-3, 4, right.shape)
    memory.run(groups)
    exact = left[rows].astype(np.float64) @ right.astype(np.float64)
    np.testing.assert_array_equal(c[rows].astype(np.float64), exact)
    return rows


@pytest.mark.parametrize(
    ("arch", "m", "k", "dtype", "tiling"),
    [
        ("gfx942", 1 << 19, 1 << 12, "int8", PLAIN),
        ("gfx942", (1 << 19) + 256, 1 << 12, "int8", PLAIN),
        ("gfx942", (1 << 18) + 1, (1 << 13) + 9, "float16", PLAIN),  # ends in a part of a word
        ("gfx942", (1 << 18) + 128, 1 << 13, "float32", PLAIN),
        ("gfx950", (1 << 18) + 1, 1 << 13, "bfloat16", DIRECT),
    ],
)
def test_a_matrix_of_many_elements(arch: str, m: int, k: int, dtype: str, tiling: Any) -> None:
    gemm = Gemm(None, arch, m, 16, k, True, dtypes=(dtype, None, None), tiling=tiling)
    rows = check(gemm, [0, *LAST])
    assert 0 in rows
    assert rows.max() == m - 1


def test_the_last_part_of_a_word_is_where_it_is_and_not_further_ahead() -> None:
    """A workgroup 2^32 bytes ahead of the end, whose offsets are those of the end in 32 bits."""
    gemm = Gemm(
        None, "gfx942", (1 << 18) + 1, 16, (1 << 13) + 9, True,
        dtypes=("float16", None, None), tiling=PLAIN,
    )  # fmt: skip
    ahead = 2 * gemm.m * gemm.k - (1 << 32)
    assert ahead // (2 * gemm.k) in check(gemm, range(0, 64, 8))


@pytest.mark.parametrize(("m", "n"), [(1, 150_000_000), (150_000_000, 1)])
def test_places_of_a_tile_beyond_the_edge_are_many(m: int, n: int) -> None:
    """The 16 rows of a tile have more than 2^31 places in a C of a row of 150 million."""
    gemm = Gemm(None, "gfx942", m, n, 8, True)
    memory = FarMemory(gemm.build())
    rows = memory.run([-1])
    a, b, c = memory.arrays
    a[rows] = np.arange(1, 9)
    b[...] = 1
    memory.run([-1])
    written = c[rows][c[rows] != 0]
    np.testing.assert_array_equal(written, np.full(max(gemm.tiled().block), 36))


def test_rows_of_a_transposed_matrix_lie_far_apart() -> None:
    gemm = Gemm(
        None, "gfx942", 1 << 20, 16, 2100, False, a_transposed=True,
        dtypes=("int8", None, None), tiling=PLAIN,
    )  # fmt: skip
    check(gemm, LAST)


def test_a_result_of_many_elements() -> None:
    gemm = Gemm(
        None, "gfx942", (1 << 17) + 256, 1 << 14, 64, True,
        dtypes=("float16", None, "float16"), tiling={"split_k": 1, "persistent": False},
    )  # fmt: skip
    kernel = gemm.build()
    memory = FarMemory(kernel)
    a, b, c = memory.arrays
    generator = np.random.default_rng(4)
    for each in (a, b):
        each[...] = generator.integers(-2, 3, each.shape)
    rows = memory.run([0, -1, -2])
    for row in (rows[0], rows[-1]):
        columns = np.flatnonzero(c[row])
        assert len(columns) > 200
        exact = b[columns].astype(np.float64) @ a[row].astype(np.float64)
        np.testing.assert_array_equal(c[row, columns].astype(np.float64), exact)
