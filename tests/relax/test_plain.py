"""Sums of one element, and what follows them: TVM's last rule would add a bias twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import te
from tvm.s_tir.dlight import gpu

import mfmadsl
from mfmadsl.relax.plain import plain_schedule


def biased(rows: int, summed: int) -> Any:
    """The sum of each row, and a bias."""
    a = te.placeholder((rows, summed), "float32", name="a")
    b = te.placeholder((rows,), "float32", name="b")
    k = te.reduce_axis((0, summed), name="k")
    total = te.compute((rows,), lambda i: te.sum(a[i, k], axis=[k]), name="total")
    return te.create_prim_func([a, b, te.compute((rows,), lambda i: total[i] + b[i], name="c")])


def computed(schedule: Any, rows: int) -> Any:
    kernel = mfmadsl.build(schedule, "gfx942")
    a, b = (np.arange(1, rows + 1, dtype=np.float32) * factor for factor in (10, 1))
    result = np.full(rows, np.nan, np.float32)
    mfmadsl.emulate(kernel, [a.reshape(rows, 1), b, result])
    return result


@pytest.mark.parametrize("rows", [1, 5, 300])
def test_a_bias_is_added_once(rows: int) -> None:
    schedule = plain_schedule(biased(rows, 1))
    assert schedule is not None
    assert np.array_equal(computed(schedule, rows), 11 * np.arange(1, rows + 1))


def test_by_tvms_last_rule_it_would_be_added_twice() -> None:
    """Once it is not, `plain` is not needed any more."""
    schedule = gpu.Fallback().apply(biased(5, 1), mfmadsl.target("gfx942"), False)
    assert np.array_equal(computed(schedule, 5), 12 * np.arange(1, 6))


def test_other_sums_are_left_to_other_rules() -> None:
    assert plain_schedule(biased(5, 2)) is None


@pytest.mark.parametrize("summed", [(1, 2), (2, 1)])
def test_a_sum_along_two_axes_has_one_element_if_both_have_one(summed: tuple[int, int]) -> None:
    assert plain_schedule(summed_twice(*summed)) is None
    assert plain_schedule(summed_twice(1, 1)) is not None


def summed_twice(first: int, second: int) -> Any:
    """The sum of each matrix of five."""
    a = te.placeholder((5, first, second), "float32", name="a")
    k, r = te.reduce_axis((0, first), name="k"), te.reduce_axis((0, second), name="r")
    total = te.compute((5,), lambda i: te.sum(a[i, k, r], axis=[k, r]), name="total")
    return te.create_prim_func([a, total])
