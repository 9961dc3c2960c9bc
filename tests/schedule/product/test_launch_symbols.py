"""Extents that are expressions: right at any value of their symbols, or refused at the launch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from tvm import te, tirx
from tvm.tirx import Expr, PrimFunc

import mfmadsl
from mfmadsl import ArgumentError
from mfmadsl.schedule import prepared
from tests.schedule.product.multiples import built, product, run


@pytest.mark.parametrize("times", [2, 3, 4, 8, 16, 24, 64])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_rows_of_a_multiple(times: int, dtype: str) -> None:
    s = te.var("s", dtype)
    function = product(times * s, 48, 96)
    for value in (1, 5):
        found, wanted = run(function, times * value, 48, 96, kernel=kernel_of(function))
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


def test_a_symbol_that_is_a_parameter_stays_one() -> None:
    s = te.var("s", "int32")
    whole = product(2 * s, 48, 96)
    function = PrimFunc([s, *whole.params], whole.body, whole.ret_type, whole.attrs)
    sch = mfmadsl.gemm_schedule(function, arch="gfx942")
    with pytest.raises(mfmadsl.LoweringError, match="argument s is no buffer"):
        mfmadsl.build(sch, "gfx942")


@cache
def kernel_of(function: PrimFunc) -> mfmadsl.Kernel:
    """Kernels for all extents, of which a launch takes one."""
    return mfmadsl.build(mfmadsl.gemm_schedule(function, arch="gfx942"), "gfx942")


def launched(function: PrimFunc, m: int, n: int, k: int, *bias: int) -> None:
    """What a launch checks, for such extents."""
    a, b = np.zeros((m, k), np.float16), np.zeros((n, k), np.float16)
    added = [np.zeros((rows, n), np.float32) for rows in bias]
    built(function).launches([a, b, *added, np.zeros((m, n), np.float32)])


@pytest.mark.parametrize("again", [False, True], ids=["", "prepared before"])
def test_rows_that_are_no_multiple_are_refused(again: bool) -> None:
    s = te.var("s", "int32")
    function = product(4 * s, 48, 96, 3, lambda i: i % s % 3)
    function = prepared(function) if again else function
    launched(function, 8, 48, 96, 3)
    with pytest.raises(ArgumentError, match=r"s_times_4 has to be a multiple of 4, but .* is 6"):
        launched(function, 6, 48, 96, 3)


@pytest.mark.parametrize(("rows", "columns", "fits"), [(4, 6, True), (4, 9, False), (6, 6, False)])
def test_multiples_of_two_numbers_are_refused(rows: int, columns: int, fits: bool) -> None:
    s = te.var("s", "int32")
    function = product(2 * s, 3 * s, 96)
    if fits:
        launched(function, rows, columns, 96)
        return
    with pytest.raises(ArgumentError, match="have to be 2 and 3 times the same, but s_times_2 is"):
        launched(function, rows, columns, 96)


@pytest.mark.parametrize(("rows", "columns", "fits"), [(8, 6, True), (7, 6, False), (8, 9, False)])
def test_two_symbols_of_one_name_are_both_checked(rows: int, columns: int, fits: bool) -> None:
    one, other = te.var("n", "int32"), te.var("n", "int32")
    function = product(2 * one, 2 * other, 96, 3, lambda i: i // one % 3)
    if fits:
        launched(function, rows, columns, 96, 3)
        return
    with pytest.raises(ArgumentError, match="has to be a multiple of 2"):
        launched(function, rows, columns, 96, 3)


def test_a_factor_is_no_symbol_where_a_function_is_prepared_again() -> None:
    s = te.var("s", "int32")
    function = prepared(product(2 * s, 48, 96, s, lambda i: i % s))
    found, wanted, bias = run(function, 14, 48, 96, 7)
    assert (found == wanted + bias[np.arange(14) % 7]).all()
    with pytest.raises(ArgumentError, match=r"A has the shape \(24, 96\), not \(36, 96\)"):
        launched(function, 36, 48, 96, 12)


n, m = te.var("n", "int32"), te.var("m", "int32")
FORMS = {
    "2n*m": 2 * n * m, "n//2*2": n // 2 * 2, "2n+1": 2 * n + 1, "n*m": n * m,
    "n+m": n + m, "n*n": n * n, "max": te.max(n, 4), "n%8": n % 8, "n<<1": n << 1,
    "if": tirx.if_then_else(n > 3, n, 2 * n), "cast": tirx.Cast("int32", te.var("n", "int64")),
}  # fmt: skip


@pytest.mark.parametrize("place", ["m", "n", "k"])
@pytest.mark.parametrize("form", FORMS)
def test_a_symbol_that_no_extent_tells_is_refused(form: str, place: str) -> None:
    extents: dict[str, Any] = {"m": 33, "n": 40, "k": 64, place: FORMS[form]}
    with pytest.raises(mfmadsl.ScheduleError, match="`n` cannot be found from the extents"):
        mfmadsl.gemm_schedule(product(**extents), arch="gfx942")


@pytest.mark.parametrize("place", ["m", "n", "k"])
@pytest.mark.parametrize(("form", "least"), [(n + 2, 2), (n - 1, 1)], ids=str)
def test_a_symbol_is_told_by_what_is_added_to_it(form: Expr, least: int, place: str) -> None:
    extents: dict[str, Any] = {"m": 33, "n": 40, "k": 64, place: form}
    kernel = built(product(**extents))
    for value in (least, 19):
        found, wanted = run(product(**extents), **{**extents, place: value}, kernel=kernel)
        assert (found == wanted).all()
    if least == 2:
        with pytest.raises(ArgumentError, match=r"has to be n \+ 2, of n from 0 on, but .* is 1"):
            run(product(**extents), **{**extents, place: 1}, kernel=kernel)


def test_a_symbol_in_an_extent_that_no_loop_has_is_refused() -> None:
    with pytest.raises(mfmadsl.ScheduleError, match="`n` cannot be found from the extents"):
        mfmadsl.gemm_schedule(product(33, 48, 96, 2 * n + 1, lambda i: i % 3), arch="gfx942")


@pytest.mark.parametrize(("part", "whole"), [(1, 2), (2, 3), (2, 4), (4, 6), (6, 8), (4, 5)])
@pytest.mark.parametrize("told", [False, True])
def test_a_sum_over_a_part_of_the_columns(part: int, whole: int, told: bool) -> None:
    """Of whole * n columns the first part * n; `told`, where n is an extent as well."""
    a = te.placeholder((33, whole * n), name="A", dtype="float16")
    b = te.placeholder((48, whole * n), name="B", dtype="float16")
    bias = te.placeholder((n,), name="bias", dtype="float32")
    r = te.reduce_axis((0, part * n), name="k")
    c = te.compute(
        (33, 48),
        lambda i, j: te.sum(a[i, r].astype("float32") * b[j, r].astype("float32"), axis=[r]),
        name="C",
    )
    d = te.compute((33, 48), lambda i, j: c[i, j] + bias[i % n], name="D")
    kernel = built(te.create_prim_func([a, b, bias, d] if told else [a, b, c]))
    for value in (3, 40):
        generator = np.random.default_rng(value)
        x, y = (generator.integers(-3, 4, (rows, whole * value)) for rows in (33, 48))
        added = generator.integers(-9, 9, value) if told else np.zeros(value, int)
        found = np.zeros((33, 48), np.float32)
        taken = [x.astype(np.float16), y.astype(np.float16)]
        taken += [added.astype(np.float32)] if told else []
        mfmadsl.sanitize(kernel, [*taken, found])
        wanted = x[:, : part * value] @ y[:, : part * value].T
        assert (found == wanted + added[np.arange(33) % value][:, None]).all()


BESIDE: dict[str, tuple[Expr, Callable[[int, int], int]]] = {
    "2n*m": (2 * n * m, lambda n, m: 2 * n * m), "n*m": (n * m, lambda n, m: n * m),
    "n//2*2": (n // 2 * 2, lambda n, _: n // 2 * 2), "n+m": (n + m, lambda n, m: n + m),
    "(n+1)*2": ((n + 1) * 2, lambda n, _: 2 * n + 2), "max": (te.max(n, 4), lambda n, _: max(n, 4)),
    "n+1": (n + 1, lambda n, _: n + 1), "2n+1": (2 * n + 1, lambda n, _: 2 * n + 1),
    "n<<1": (n << 1, lambda n, _: 2 * n), "n-3": (n - 3, lambda n, _: n - 3),
    "n+n": (n + n, lambda n, _: 2 * n), "2n+2m": (2 * n + 2 * m, lambda n, m: 2 * n + 2 * m),
    "n%8": (n % 8, lambda n, _: n % 8),
}  # fmt: skip


@pytest.mark.parametrize("form", BESIDE)
def test_an_expression_beside_its_symbols(form: str) -> None:
    extent, value = BESIDE[form]
    kernel = built(biased(extent))
    for of_n, of_m in ((7, 3), (13, 40)):
        rows = value(of_n, of_m)
        generator = np.random.default_rng(rows)
        a, b, x, y = (
            generator.integers(-3, 4, shape) for shape in ((rows, 96), (48, 96), (of_n,), (of_m,))
        )
        taken = [
            a.astype(np.float16), b.astype(np.float16), x.astype(np.float32), y.astype(np.float32),
        ]  # fmt: skip
        found = np.zeros((rows, 48), np.float32)
        mfmadsl.sanitize(kernel, [*taken, found])
        places = np.arange(rows)
        assert (found == a @ b.T + (x[places % of_n] + y[places % of_m])[:, None]).all()
        wrong = [np.zeros((rows + 1, 96), np.float16), *taken[1:]]
        with pytest.raises(ArgumentError, match=r"has the shape|has to be"):
            kernel.launches([*wrong, np.zeros((rows + 1, 48), np.float32)])


def biased(rows: Expr) -> PrimFunc:
    """A product with two vectors added to its columns, by the places of `n` and of `m`."""
    a = te.placeholder((rows, 96), name="A", dtype="float16")
    b = te.placeholder((48, 96), name="B", dtype="float16")
    x, y = (te.placeholder((s,), name=name, dtype="float32") for s, name in ((n, "X"), (m, "Y")))
    r = te.reduce_axis((0, 96), name="k")
    c = te.compute(
        (rows, 48),
        lambda i, j: te.sum(a[i, r].astype("float32") * b[j, r].astype("float32"), axis=[r]),
        name="C",
    )
    d = te.compute((rows, 48), lambda i, j: c[i, j] + x[i % n] + y[i % m], name="D")
    return te.create_prim_func([a, b, x, y, d])


def test_an_extent_that_cannot_be_computed_is_refused_at_the_launch() -> None:
    kernel = built(biased(n // (m - 3)))
    for of_m, rows in ((3, 5), (4, 6)):
        taken = [np.zeros(s, "float32") for s in ((5,), (of_m,), (rows, 48))]
        halves = [np.zeros((rows, 96), np.float16), np.zeros((48, 96), np.float16)]
        with pytest.raises(ArgumentError, match=r"by zero|has to be"):
            kernel.launches([*halves, *taken])


def test_of_no_rows_nothing_is_launched() -> None:
    kernel = built(biased(n // 2))
    taken = [np.zeros(s, "float32") for s in ((1,), (1,), (0, 48))]
    halves = [np.zeros((0, 96), np.float16), np.zeros((48, 96), np.float16)]
    assert kernel.launches([*halves, *taken]) == []


def test_names_that_are_taken() -> None:
    taken = [te.var(name, "int32") for name in ("factor_2", "n_times_4")]
    for symbol in taken:
        function = product(2 * n, symbol, 96, n, lambda i: i // 2)
        found, wanted, bias = run(function, 14, 50, 96, 7)
        assert (found == wanted + bias[np.arange(14) // 2]).all()
    found, wanted = run(product(4 * n, taken[1], 96), 12, 50, 96)
    assert (found == wanted).all()
