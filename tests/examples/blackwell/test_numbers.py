"""Every kernel executed: its numbers, its synchronisation, and what it moves."""

from __future__ import annotations

import numpy as np
import pytest

from b200 import execute
from examples.blackwell_gemm.check import check, matrices, worst_error
from examples.blackwell_gemm.ladder import STEPS, Size, Step
from examples.blackwell_gemm.model import UNIT, kib_loaded
from tests.cases import drawn

BY_NAME = {step.name: step for step in STEPS}
HALF = 2
COPIED_BY_THREADS = {"v1", "v2", "v3"}  # the others load and store by TMA


@pytest.mark.thorough
@pytest.mark.parametrize("step", drawn(STEPS, 4), ids=lambda step: step.name)
def test_the_kernel_is_right_and_its_synchronisation_whole(step: Step) -> None:
    checked = check(step, sms=2)
    assert checked.faults == ()
    assert checked.worst <= 1

    m, n, k = step.check
    assert checked.counts.multiply_adds == m * n * k
    if step.name not in COPIED_BY_THREADS:
        assert checked.counts.stored == m * n * HALF
        assert checked.counts.loaded == m * n * k / UNIT * kib_loaded(step) * 1024


@pytest.mark.parametrize(("seed", "late"), [(1, True), (2, False)])
@pytest.mark.parametrize("name", drawn(["v5", "v7", "v9"], 1))
def test_no_order_of_the_warps_makes_a_difference(name: str, seed: int, late: bool) -> None:
    step = BY_NAME[name]
    size = (step.tile[0], 2 * step.tile[1], 3 * 64)
    arrays = matrices(size, seed)
    report = execute(step.kernel(size, 2), arrays, sms=2, seed=seed, late=late)
    assert report.faults == ()
    assert worst_error(*arrays) <= 1


@pytest.mark.parametrize(
    ("name", "size", "sms"),
    [
        ("v2", (128, 128, 64), 1),  # one step along K: nothing to accumulate
        ("v5", (128, 128, 64), 1),  # fewer steps than stages
        ("v6", (128, 128, 64), 3),  # more SMs than tiles
        ("v8", (128, 384, 64), 1),  # a stage wraps around in a later tile only
        ("v7", (1152, 128, 64), 4),  # more tiles above each other than are taken in a group
        ("v9", (256, 256, 64), 4),  # a pair without a tile
    ],
)
def test_edges(name: str, size: Size, sms: int) -> None:
    arrays = matrices(size)
    report = execute(BY_NAME[name].kernel(size, sms), arrays, sms=sms)
    assert report.faults == ()
    assert worst_error(*arrays) <= 1


def test_the_tolerance_is_that_of_rounding() -> None:
    a, b, c = matrices((128, 128, 64))
    exact = a.astype(np.float64) @ b.T.astype(np.float64)
    c[:] = exact
    assert 0 < worst_error(a, b, c) <= 1
    for beyond in (np.float16(999), np.float16(-999)):
        off = c.copy()
        off[3, 5] = np.nextafter(np.nextafter(c[3, 5], beyond), beyond)
        assert worst_error(a, b, off) > 1


def test_an_element_that_nobody_wrote_is_wrong() -> None:
    a, b, c = matrices((128, 128, 64))
    assert worst_error(a, b, c) == float("inf")


def test_two_swapped_elements_are_wrong() -> None:
    a, b, c = matrices((128, 128, 64))
    c[:] = a.astype(np.float64) @ b.T.astype(np.float64)
    c[[7, 8]] = c[[8, 7]]
    assert worst_error(a, b, c) > 1
