"""On a chip that is full each step is faster than the one before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from examples.gpu_gemm.ladder import CLASSIC, FULL, LADDER
from examples.gpu_gemm.predict import Prediction, predict
from examples.product import Size
from mfmadsl.model import product_of

pytestmark = [
    pytest.mark.xdist_group("gpu_gemm_model"),  # one process keeps what was found
    pytest.mark.thorough,  # test_readme.py has two of its figures, test_steps.py the kernels
]

ARCH = "gfx942"
UNITS = 304
SHORT = replace(FULL, k=64)  # as many workgroups, in less of our time
NARROW = Size(1024, 1216, 32)
"""Where workgroups are so many that they fill the chip with a quarter of the rows and columns."""
FIRST = ("naive", "one_dimension", "two_dimensions", "coalesced")
THREADS = ("shared_memory", "thread_tiles", "vectors")
MATRIX = ("mfma", "gemm")


def predicted(names: tuple[str, ...], size: Size) -> dict[str, Prediction]:
    steps = {step.name: step for step in LADDER}
    return {name: predict(steps[name].schedule(size, ARCH), size, ARCH) for name in names}


@pytest.fixture(scope="module")
def found() -> dict[str, Prediction]:
    return predicted(FIRST, NARROW) | predicted(THREADS, SHORT) | predicted(MATRIX, FULL)


def test_each_step_is_faster_than_the_one_before(found: dict[str, Prediction]) -> None:
    rates = [each.rate for each in found.values()]
    assert rates == sorted(rates), list(zip(found, rates, strict=True))


def test_no_step_is_faster_than_the_chip(found: dict[str, Prediction]) -> None:
    """128 multiply-adds of float32 a cycle and unit, by vectors of two as by matrix cores."""
    assert all(0 < each.rate < 128 for each in found.values())


def test_the_full_size_has_a_tile_of_128_by_128_for_each_compute_unit(
    found: dict[str, Prediction],
) -> None:
    assert found["vectors"].workgroups == 4 * UNITS == 4 * product_of(ARCH).compute_units
    assert CLASSIC.m * CLASSIC.n // 128**2 == 32  # of the classic one only one in ten has any


def test_what_limits_it_moves_from_the_lds_to_the_matrix_cores(
    found: dict[str, Prediction],
) -> None:
    assert found["shared_memory"].limit == found["thread_tiles"].limit == "LDS"
    assert found["mfma"].limit == found["gemm"].limit == "matrix cores"
