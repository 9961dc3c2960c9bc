"""What sums of integers can become is never more than is said."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tvm import ir, tirx
from tvm.sym import Analyzer

from mfmadsl.passes.tir.expression import constant, numbers
from mfmadsl.passes.tir.linear import (
    common_factor,
    counts_down,
    largest,
    linear,
    linear_in,
    without_remainders,
)

X, Y = tirx.Var("x", "int32"), tirx.Var("y", "int32")
SIDES = [tirx.LT, tirx.LE, tirx.GT, tirx.GE]
FACTOR, BOUND = st.integers(-4, 4), st.integers(-20, 40)
FORM = st.tuples(FACTOR, FACTOR, BOUND)


def known() -> Analyzer:
    """x below 7 and y below 5."""
    analyzer = Analyzer()
    for variable, extent in ((X, 7), (Y, 5)):
        analyzer.bind(variable, ir.Range(0, extent))
    return analyzer


def form(a: int, b: int, c: int) -> Any:
    return X * a + Y * b + c


def divided(parts: tuple[int, int, int], by: int) -> Any:
    a, b, c = parts
    return X * a + tirx.floordiv(Y * b + c, by)


@given(
    FORM, st.lists(st.tuples(st.sampled_from(SIDES), FORM, st.integers(1, 4), FORM), max_size=2),
    st.integers(1, 4), st.integers(-3, 3),
)  # fmt: skip
def test_nothing_is_larger(expression: Any, conditions: Any, by: int, times: int) -> None:
    analyzer, of = known(), form(*expression) + tirx.floordiv(X * 2 + Y, by) * times
    holding = [side(divided(left, by), form(*right)) for side, left, by, right in conditions]
    most = largest(of, holding, analyzer)
    for x, y in product(range(7), range(5)):
        values = {"x": x, "y": y}
        sides = [(numbers(c.a, values), numbers(c.b, values), type(c)) for c in holding]
        compare = {tirx.LT: "__lt__", tirx.LE: "__le__", tirx.GT: "__gt__", tirx.GE: "__ge__"}
        if all(getattr(a, compare[kind])(b) for a, b, kind in sides):
            assert most is None or numbers(of, values) <= most


def test_a_condition_bounds_its_multiples() -> None:
    analyzer = known()
    of = X * 2 + Y
    turned = tirx.GT(tirx.const(9), of), tirx.GE(tirx.const(8), of)
    for condition in (of < 9, of <= 8, *turned):
        assert largest(X * 6 + Y * 3 + 1, [condition], analyzer) == 25
    assert largest(X * 6 + Y * 3 + 1, [], analyzer) == 49


def test_a_condition_bounds_what_is_divided() -> None:
    analyzer = known()
    assert largest(tirx.floordiv(X, 2) * 2 + Y, [X < 4], analyzer) == 6
    assert largest(tirx.floordiv(X + Y * 2, 4) * 3 + Y, [X + Y * 2 < 7], analyzer) == 7
    assert largest(tirx.floordiv(X, 2) * 2 + Y, [], analyzer) == 10


def test_a_condition_on_both_sides_bounds_what_is_between() -> None:
    n = tirx.Var("n", "int32")
    assert largest(X - n, [n > X], known()) == -1
    assert largest(-X, [tirx.LE(tirx.const(1), X)], known()) == -1


def test_a_bound_of_a_quotient_bounds_what_is_divided() -> None:
    analyzer = known()
    condition = X * 2 + tirx.floordiv(Y, 4) < 5
    assert largest(X * 8 + Y, [condition], analyzer) == 19
    assert largest(X * 24 + Y * 3 + 1, [condition], analyzer) == 58
    assert largest(X * 8 + Y * 2, [], analyzer) == largest(X * 8 + Y * 2, [condition], analyzer)


@pytest.mark.parametrize(
    ("whole", "factor"),
    [
        (X * 6 + Y * 3 + 1, 3),
        (X * 6 + Y * 2, None),  # three times, and twice
        (X * 2 + Y * 3, None),
        (X * 6, None),  # not at all
        (X * 3 + Y, None),
        (X * -2 - Y, None),
    ],
    ids=str,
)
def test_all_terms_are_taken_equally_often(whole: Any, factor: int | None) -> None:
    assert common_factor(linear(whole), linear(X * 2 + Y)) == factor


@given(FORM)
def test_what_counts_up_is_not_negative_without_its_constant(expression: Any) -> None:
    of = form(*expression)
    if not counts_down(of, known()):
        a, b, c = expression
        assert min(a, b, c) >= 0


def test_what_counts_down() -> None:
    analyzer = known()
    assert counts_down(tirx.const(63) - X, analyzer)
    assert counts_down((X * 2 + Y) * 3 + (Y - 1) * 2, analyzer)
    assert not counts_down(tirx.Cast("int64", X * 8) + tirx.floordiv(Y, 2) + 5, analyzer)


def test_a_wide_condition_bounds_what_is_written_otherwise() -> None:
    """In one cast or in one for each part, or in none."""
    analyzer, wide = known(), [tirx.Cast("int64", each) for each in (X, Y)]
    for condition in (X * 2 + Y < 9, tirx.Cast("int64", X * 2 + Y) < tirx.const(9, "int64")):
        for of in (tirx.Cast("int64", X * 6 + Y * 3), wide[0] * 6 + wide[1] * 3):
            assert largest(of + 1, [condition], analyzer) == 25


@pytest.mark.parametrize(
    "place",
    [
        X * 64 + Y,
        tirx.Cast("int64", X * 64 + Y),
        tirx.Cast("int64", X) * 64 + tirx.Cast("int64", Y),
        tirx.Cast("int64", X * 16) * 4 + tirx.Cast("int64", Y // 2) * 2 + tirx.Cast("int64", Y % 2),
    ],
    ids=str,
)
def test_a_place_is_linear_through_casts(place: Any) -> None:
    found = linear_in(place, X)
    assert found is not None
    assert constant(Analyzer().simplify(found[0])) == 64
    for y in range(5):
        assert numbers(found[1], {"y": y}) == y


@pytest.mark.parametrize("place", [X * X, X // 2, Y * X % 5], ids=str)
def test_what_is_not_linear_is_not_in_64_bits_either(place: Any) -> None:
    assert linear_in(place, X) is None
    assert linear_in(tirx.Cast("int64", place), X) is None


@given(st.integers(1, 16), st.integers(0, 20), st.integers(0, 20), st.integers(1, 24), BOUND)
def test_without_remainders_a_quotient_is_the_same(
    a: int, b: int, c: int, by: int, constant_term: int
) -> None:
    of = tirx.floordiv(X * a * by + X * b + Y * c + constant_term, by) * 3 + Y
    found = without_remainders(of, known())
    for x, y in product(range(7), range(5)):
        values = {"x": x, "y": y}
        assert numbers(found, values) == numbers(of, values)


def test_what_a_quotient_rounds_off_is_left_out() -> None:
    analyzer = known()
    of = tirx.floordiv(X * 64 + Y * 8 + 1, 128)
    assert str(without_remainders(of, analyzer)) == str(tirx.floordiv(X, 2))
    assert str(without_remainders(tirx.floordiv(X * 64 + Y * 8 + 1, 64), analyzer)) == str(X)
    kept = tirx.floordiv(X * 64 + Y * 17, 128)  # y adds 68 at most
    assert str(without_remainders(kept, analyzer)) == str(kept)


def test_what_memory_says_of_a_variable_is_not_linear_in_it() -> None:
    """TVM's own equation takes an element for a constant."""
    i = tirx.Var("i", "int32")
    table = tirx.decl_buffer((8,), "int32", "table")
    assert linear_in(table[i] + i * 2, i) is None
    assert linear_in(table[0] + i * 2, i) is not None
