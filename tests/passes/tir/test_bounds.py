"""What the analyzer is told of values that are read of memory."""

from __future__ import annotations

import pytest
from tvm import tirx
from tvm.sym import Analyzer
from tvm.tirx import Bind, Expr, Var

from mfmadsl.passes.tir.bounds import bind_value

COUNTS = tirx.decl_buffer((4,), "int32", "counts")


def ends(value: Expr) -> tuple[int, int]:
    """The least and the most that a variable of a value may be."""
    analyzer, variable = Analyzer(), Var("v", str(value.ty.dtype))
    bind_value(analyzer, Bind(variable, value))
    bound = analyzer.const_int_bound(variable)
    return int(bound.min_value), int(bound.max_value)


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        (tirx.max(tirx.min(COUNTS[0], 99), 0), 0, 99),
        (tirx.min(tirx.max(COUNTS[0], -5), 7), -5, 7),
    ],
)
def test_it_lies_where_its_value_does(value: Expr, least: int, most: int) -> None:
    assert ends(value) == (least, most)


def test_of_what_has_no_bounds_nothing_is_told() -> None:
    whole = ends(tirx.Cast("float32", COUNTS[0]))
    assert whole[0] < -(1 << 40)
