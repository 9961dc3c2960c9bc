"""The ten kernels compute the product, in whatever order things happen, and nothing is amiss."""

from __future__ import annotations

import numpy as np
import pytest

from b200 import execute
from tests.b200.problems import PROBLEMS, product

ORDERS = [(0, True), (1, True), (2, False)]  # seeds, and whether what is asynchronous ends late
TILES = {**dict.fromkeys((4, 5, 6, 7, 8), (128, 128)), 9: (256, 256), 10: (512, 256)}
"""Rows and columns of C that are computed of operands that TMA loads once."""


@pytest.mark.parametrize(("seed", "late"), ORDERS, ids=str)
@pytest.mark.parametrize("step", sorted(PROBLEMS))
def test_a_kernel_is_right_and_has_no_fault(step: int, seed: int, late: bool) -> None:
    problem = PROBLEMS[step]
    arrays = problem.arrays()
    report = execute(problem.kernel, arrays, seed=seed, late=late)
    assert report.faults == ()
    np.testing.assert_array_equal(arrays[2], product(arrays))

    counts = report.counts
    assert counts.multiply_adds == problem.m * problem.n * problem.k
    assert counts.read == problem.m * problem.n * 4
    if step in TILES:
        rows, columns = TILES[step]
        tiles = problem.m // rows * problem.n // columns
        assert counts.loaded == tiles * (rows + columns) * problem.k * 2
        assert counts.stored == problem.m * problem.n * 2


def test_a_seed_decides_all() -> None:
    problem = PROBLEMS[5]
    runs = []
    for _ in range(2):
        arrays = problem.arrays()
        runs.append((execute(problem.kernel, arrays, seed=5), arrays[2].tobytes()))
    assert runs[0] == runs[1]


def test_more_ctas_than_sms_run_one_after_the_other() -> None:
    problem = PROBLEMS[4]
    arrays = problem.arrays()
    assert execute(problem.kernel, arrays, sms=1).faults == ()
    np.testing.assert_array_equal(arrays[2], product(arrays))
