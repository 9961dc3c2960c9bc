"""Extents that are a number times a symbol: right at any value of it, and never TVM's words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import s_tir, te
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.passes.kernel.factor import FACTORS, with_factors
from mfmadsl.schedule import prepared
from mfmadsl.schedule.product.factored import with_plain_extents


def product(m: Any, n: Any, k: Any, bias: Any = None, row: Any = None) -> PrimFunc:
    """C[m, n], or with `bias`, its rows, also the rows that `row` takes of those."""
    a = te.placeholder((m, k), name="A", dtype="float16")
    b = te.placeholder((n, k), name="B", dtype="float16")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(a[i, r].astype("float32") * b[j, r].astype("float32"), axis=[r]),
        name="C",
    )
    if bias is None:
        return te.create_prim_func([a, b, c])
    added = te.placeholder((bias, n), name="bias", dtype="float32")
    d = te.compute((m, n), lambda i, j: c[i, j] + added[row(i), j], name="D")
    return te.create_prim_func([a, b, added, d])


def run(function: PrimFunc, m: int, n: int, k: int, bias: int | None = None) -> Any:
    """(what the kernel gives, A x B^T, the bias), under the sanitizer."""
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(function, arch="gfx942"), "gfx942")
    generator = np.random.default_rng(m + n + k)
    a, b = (generator.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (n, k)))
    added = [] if bias is None else [generator.integers(-9, 9, (bias, n)).astype(np.float32)]
    c = np.zeros((m, n), np.float32)
    mfmadsl.sanitize(kernel, [a, b, *added, c])
    return c, a.astype(np.float64) @ b.astype(np.float64).T, *added


@pytest.mark.parametrize("times", [2, 3, 4, 8, 16, 24, 64])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_rows_of_a_multiple(times: int, dtype: str) -> None:
    s = te.var("s", dtype)
    function = product(times * s, 48, 96)
    for value in (1, 5):
        found, wanted = run(function, times * value, 48, 96)
        assert (found == wanted).all()


@pytest.mark.parametrize("place", ["n", "k"])
def test_columns_and_sums_of_a_multiple(place: str) -> None:
    s = te.var("s", "int32")
    extents = {"m": 33, "n": 40, "k": 64}
    function = product(*{**extents, place: 2 * s}.values())
    for value in (3, 50):
        found, wanted = run(function, *{**extents, place: 2 * value}.values())
        assert (found == wanted).all()


@pytest.mark.parametrize(("rows", "columns"), [(2, 4), (4, 2), (2, 2), (6, 1), (4, 6), (6, 9)])
def test_two_multiples_of_one_symbol(rows: int, columns: int) -> None:
    s = te.var("s", "int32")
    function = product(rows * s, columns * s, 96)
    for value in (3, 20):
        found, wanted = run(function, rows * value, columns * value, 96)
        assert (found == wanted).all()


@pytest.mark.parametrize("times", [4, 5])
def test_a_symbol_that_is_no_extent_is_taken_from_its_multiple(times: int) -> None:
    s = te.var("s", "int32")
    function = product(times * s, 48, 96, 3, lambda i: i % s % 3)
    for value in (1, 9):
        found, wanted, bias = run(function, times * value, 48, 96, 3)
        assert (found == wanted + bias[np.arange(times * value) % value % 3]).all()


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
    sch = mfmadsl.gemm_schedule(function, arch="gfx942")
    fresh = s_tir.Schedule(prepared(function))
    sch.trace.apply_to_schedule(fresh, remove_postproc=False)
    assert fresh.mod["main"].script() == sch.mod["main"].script()


def test_a_symbol_that_is_a_parameter_stays_one() -> None:
    s = te.var("s", "int32")
    whole = product(2 * s, 48, 96)
    function = PrimFunc([s, *whole.params], whole.body, whole.ret_type, whole.attrs)
    sch = mfmadsl.gemm_schedule(function, arch="gfx942")
    with pytest.raises(mfmadsl.LoweringError, match="argument s is no buffer"):
        mfmadsl.build(sch, "gfx942")
