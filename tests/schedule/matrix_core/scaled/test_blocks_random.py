"""Random products in scaled blocks: right under the sanitizer, of one kernel or with K split.

A number stands for each of them: MFMADSL_FIRST=5000 takes those from there on, not the usual ones.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mfmadsl
from mfmadsl.schedule.matrix_core.gemm import gemm_tilings
from tests.cases import FIRST, drawn
from tests.schedule.matrix_core.scaled.blocks import CHIPS, FLOATS, Blocks, built, check

SEEDS = drawn(range(FIRST, FIRST + 100), 12)
TURNED = ("A", "B", "SA", "SB")
KS = (32, 64, 96, 128, 256, 384, 1 << 20)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_product(seed: int) -> None:
    rng = np.random.default_rng(seed + 10**6)

    def of(*choices: Any) -> Any:
        return choices[rng.integers(len(choices))]

    arch = of(*CHIPS)
    m, n = (int(of(1, 5, 16, 33, 64, 100, 130, 257)) for _ in "mn")
    shape = m, n, int(rng.integers(1, 700))
    sizes = [
        None if rng.random() < 0.15 else (of(1, 1, 16, 100, 128, 1 << 20), of(*KS)) for _ in "ab"
    ]
    if sizes == [None, None]:
        sizes[0] = (1, 128)
    turned = " ".join(each for each in TURNED if rng.random() < 0.3)
    blocks = Blocks(
        sizes[0], sizes[1], of("float32", "float32", "bfloat16", "float16", "float8_e8m0fnu"),
        turned, bool(rng.random() < 0.5), of(None, None, None, 3),
    )  # fmt: skip
    types = of(*FLOATS[arch]), of(*FLOATS[arch])
    workload = blocks.workload(shape, types)
    if arch == "gfx950" and blocks.dtype == "float8_e8m0fnu" and shape[2] % 32:
        # These are the types of MX formats, whose groups are whole.
        with pytest.raises(mfmadsl.ScheduleError, match="no multiple of 32: pad with zeros"):
            mfmadsl.gemm_schedule(workload, arch=arch)
        return
    offered = gemm_tilings(workload, arch=arch)
    tiling = offered[int(rng.integers(len(offered)))] if rng.random() < 0.5 else None
    kernel = built(workload, arch, tiling)
    check(kernel, blocks, shape, types)


@pytest.mark.parametrize("arch", CHIPS)
def test_a_scale_that_is_no_number_spoils_its_own_rows_and_columns(arch: str) -> None:
    m, n, k, dtype = 70, 300, 260, FLOATS[arch][0]
    workload = mfmadsl.block_scaled_matmul(m, n, k, dtype)
    a, b = (np.ones((rows, k), getattr(ml_dtypes, dtype)) for rows in (m, n))
    of_a, of_b = np.ones((m, 3), np.float32), np.ones((3, 3), np.float32)
    of_a[5, 2], of_b[1, 0] = np.nan, np.inf
    c = np.zeros((m, n), np.float32)
    mfmadsl.sanitize(built(workload, arch), [a, of_a, b, of_b, c])
    wanted = np.full((m, n), float(k))
    wanted[:, 128:256] = np.inf
    wanted[5] = np.nan
    np.testing.assert_array_equal(c, wanted)
