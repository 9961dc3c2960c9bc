"""Extents that are an even number times a symbol: right at any value, and told by an attribute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import s_tir, te

import mfmadsl
from mfmadsl.passes.kernel.factor import FACTORS, with_factors
from mfmadsl.schedule import prepared
from mfmadsl.schedule.product.factored import with_plain_extents
from tests.schedule.product.multiples import product, run


@pytest.mark.parametrize("place", ["n", "k"])
def test_columns_and_sums_of_a_multiple(place: str) -> None:
    s = te.var("s", "int32")
    extents: dict[str, Any] = {"m": 33, "n": 40, "k": 64}
    function = product(**{**extents, place: 2 * s})
    for value in (3, 50):
        found, wanted = run(function, *{**extents, place: 2 * value}.values())
        assert (found == wanted).all()


@pytest.mark.parametrize("times", [2, 3, 12])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("quotient", [True, False], ids=["//", "%"])
def test_who_says_the_symbol_elsewhere_gets_it(times: int, dtype: str, quotient: bool) -> None:
    s = te.var("s", dtype)
    row = (lambda i: i // times) if quotient else (lambda i: i % s)
    function = product(times * s, 48, 96, s, row)
    for value in (1, 9):
        found, wanted, bias = run(function, times * value, 48, 96, value)
        rows = np.arange(times * value)
        assert (found == wanted + bias[rows // times if quotient else rows % value]).all()


def test_factors_are_told_by_an_attribute_and_put_back() -> None:
    s = te.var("s", "int32")
    function = product(4 * s, 48, 96, s, lambda i: i // 4)
    changed = with_plain_extents(function)
    assert dict(changed.attrs[FACTORS]) == {"factor_4": 4}
    back = with_factors(changed)
    assert FACTORS not in back.attrs
    assert back.script() == function.script()


@pytest.mark.parametrize("extent", [7, 64, "s", "3s", "256s"])
def test_what_needs_no_symbol_gets_none(extent: int | str) -> None:
    s = te.var("s", "int32")
    rows = {"s": s, "3s": 3 * s, "256s": 256 * s}.get(str(extent), extent)
    function = product(rows, 48, 96, s, lambda i: i % 2) if isinstance(extent, str) else None
    function = product(rows, 48, 96) if function is None else function
    assert with_plain_extents(function) is function


def test_the_trace_replays_on_what_is_prepared() -> None:
    s = te.var("s", "int32")
    function = product(2 * s, 48, 96, s, lambda i: i // 2)
    tiling = mfmadsl.gemm_tiling(function, arch="gfx942")
    sch = mfmadsl.gemm_schedule(function, arch="gfx942", tiling=tiling)
    fresh = s_tir.Schedule(prepared(function))
    sch.trace.apply_to_schedule(fresh, remove_postproc=False)
    assert fresh.mod["main"].script() == sch.mod["main"].script()
