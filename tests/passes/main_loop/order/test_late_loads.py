"""Loads for which the vector L1 has no lines beside the others: an iteration makes them later."""

from __future__ import annotations

import numpy as np
import pytest

import mfmadsl
from mfmadsl.emulator.profiler.main_loop import loop_instructions

LARGE = mfmadsl.Tiling((256, 256), 64, (2, 4), "mfma_f32_32x32x8_f16", 2)  # 64 KiB an iteration
SMALL = mfmadsl.Tiling((64, 64), 128, (2, 2), "mfma_f32_32x32x8_f16", 2)  # waits for memory


def built(m: int, n: int, k: int, tiling: mfmadsl.Tiling) -> mfmadsl.Kernel:
    workload = mfmadsl.matmul(m, n, k, "float16", "float32", True)
    return mfmadsl.build(mfmadsl.gemm_schedule(workload, arch="gfx942", tiling=tiling), "gfx942")


def loads_around_the_barriers(kernel: mfmadsl.Kernel) -> list[int]:
    """How many loads of a wave stand before the main loop's first barrier, between, and behind."""
    counts = [0]
    for each in loop_instructions(kernel.assembly):
        if each.name == "s_barrier":
            counts.append(0)
        counts[-1] += each.name.startswith("buffer_load")
    return counts


@pytest.mark.parametrize("k", [64, 128, 200])
def test_one_iteration_two_and_a_short_one(k: int) -> None:
    """What one multiplies is not what its neighbours do; the first tile ends at an edge."""
    m, n = 250, 256
    a = (np.arange(m)[:, None] % 3 + np.arange(k) % 7 - 4).astype(np.float16)
    b = (np.arange(n)[:, None] % 5 - np.arange(k) % 11 + 3).astype(np.float16)
    c = np.full((m, n), np.nan, np.float32)
    mfmadsl.sanitize(built(m, n, k, LARGE), [a, b, c])
    np.testing.assert_array_equal(c, a.astype(float) @ b.T.astype(float))


def test_half_of_what_is_twice_the_lines_is_loaded_under_the_first_products() -> None:
    assert loads_around_the_barriers(built(1024, 1024, 1024, LARGE)) == [4, 4, 0]


def test_a_loop_that_waits_for_memory_asks_for_all_of_it_at_once() -> None:
    """Two iterations of them are in flight, in registers of their own."""
    before, first, _, second, _ = loads_around_the_barriers(built(1024, 1024, 1024, SMALL))
    assert before == 0
    assert first == second == 8
