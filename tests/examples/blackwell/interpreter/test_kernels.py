"""The ten kernels compute the product, in whatever order things happen, and nothing is amiss."""

from __future__ import annotations

import numpy as np
import pytest

from examples.blackwell_gemm.interpreter import execute
from tests.examples.blackwell.interpreter.problems import PROBLEMS, product

ORDERS = [(0, True), (1, True), (2, False)]  # seeds, and whether what is asynchronous ends late


@pytest.mark.parametrize(("seed", "late"), ORDERS, ids=str)
@pytest.mark.parametrize("step", sorted(PROBLEMS))
def test_a_kernel_is_right_and_has_no_fault(step: int, seed: int, late: bool) -> None:
    arrays = PROBLEMS[step].arrays()
    report = execute(PROBLEMS[step].kernel, arrays, seed=seed, late=late)
    assert report.faults == ()
    np.testing.assert_array_equal(arrays[2], product(arrays))


@pytest.mark.parametrize("step", sorted(PROBLEMS))
def test_all_of_the_product_is_computed_once(step: int) -> None:
    problem = PROBLEMS[step]
    counts = execute(problem.kernel, problem.arrays()).counts
    assert counts.multiply_adds == problem.m * problem.n * problem.k
    assert counts.read == problem.m * problem.n * 4


@pytest.mark.parametrize(
    ("step", "tile"), [(4, (128, 128)), (6, (128, 128)), (9, (256, 256)), (10, (512, 256))]
)
def test_larger_tiles_load_less(step: int, tile: tuple[int, int]) -> None:
    problem = PROBLEMS[step]
    counts = execute(problem.kernel, problem.arrays()).counts
    tiles = problem.m // tile[0] * problem.n // tile[1]
    assert counts.loaded == tiles * sum(tile) * problem.k * 2
    assert counts.stored == problem.m * problem.n * 2


def test_a_seed_decides_all() -> None:
    reports = []
    for _ in range(2):
        arrays = PROBLEMS[7].arrays()
        reports.append((execute(PROBLEMS[7].kernel, arrays, seed=5), arrays[2].tobytes()))
    assert reports[0] == reports[1]


def test_more_ctas_than_sms_run_one_after_the_other() -> None:
    problem = PROBLEMS[4]
    whole, few = problem.arrays(), problem.arrays()
    execute(problem.kernel, whole)
    assert execute(problem.kernel, few, sms=1).faults == ()
    np.testing.assert_array_equal(few[2], whole[2])
