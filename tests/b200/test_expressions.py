"""Expressions are computed as TIRX means them, for a whole warp at a time."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tvm import tirx

from b200.buffers import key
from b200.expressions import Expressions
from b200.machine import LANES, Cluster, Cta, Machine, Value, Warp
from b200.place import Statement
from b200.report import NotUnderstood

A, B = tirx.Var("a", "int32"), tirx.Var("b", "int32")
OPERATIONS: dict[str, tuple[Any, Callable[[int, int], object]]] = {
    "add": (A + B, operator.add),
    "subtract": (A - B, operator.sub),
    "multiply": (A * B, operator.mul),
    "floor division": (tirx.floordiv(A, B), operator.floordiv),
    "floor remainder": (tirx.floormod(A, B), operator.mod),
    "division": (tirx.truncdiv(A, B), lambda a, b: math.trunc(a / b)),
    "remainder": (tirx.Mod(A, B), lambda a, b: int(math.fmod(a, b))),
    "minimum": (tirx.min(A, B), min),
    "maximum": (tirx.max(A, B), max),
    "less": (A < B, operator.lt),
    "at least": (A >= B, operator.ge),
    "equal": (A.equal(B), operator.eq),
    "and": (tirx.And(A < B, A > 0), lambda a, b: a < b and a > 0),
    "or": (tirx.Or(A < B, A > 0), lambda a, b: a < b or a > 0),
    "not": (tirx.Not(A < B), lambda a, b: not a < b),
    "bits in both": (A & B, operator.and_),
    "bits in either": (A | B, operator.or_),
    "bits in one": (A ^ B, operator.xor),
    "choice": (tirx.Select(A < B, A, B * 2), lambda a, b: a if a < b else b * 2),
    "low bits": (tirx.Cast("uint16", A), lambda a, b: a & 0xFFFF),
}
NUMBERS = st.integers(-1000, 1000)


def warp() -> Warp:
    """The first of a CTA."""
    return Warp(Cta(Machine(late=True, leader=0), Cluster(0), 0, 0), 0)


def computed(node: Any, a: Value, b: Value) -> Value:
    here = warp()
    here.values.update({key(A): a, key(B): b})
    return Expressions().compute(node, Statement(node))(here)


@pytest.mark.parametrize("name", OPERATIONS)
@given(a=NUMBERS, b=NUMBERS)
def test_an_operation_is_that_of_python(name: str, a: int, b: int) -> None:
    node, expected = OPERATIONS[name]
    assume(b != 0)
    assert computed(node, a, b) == expected(a, b)


@pytest.mark.parametrize("name", OPERATIONS)
def test_lanes_compute_each_for_itself(name: str) -> None:
    node, _ = OPERATIONS[name]
    a, b = np.arange(LANES) - 16, np.arange(LANES) % 5 + 1
    together = computed(node, a, b)
    one_by_one = [computed(node, int(x), int(y)) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(together, one_by_one)


def test_a_variable_without_a_value_is_not_understood() -> None:
    with pytest.raises(NotUnderstood, match="the variable a, which has no value"):
        Expressions().compute(A, Statement("here"))(warp())


def test_a_buffer_that_nobody_declared_is_not_understood() -> None:
    load = tirx.BufferLoad(tirx.decl_buffer((4,), "int32", "unknown"), [0])
    with pytest.raises(NotUnderstood, match="the buffer unknown, which is not declared"):
        Expressions().compute(load, Statement("here"))
