"""Which lanes find the word behind their neighbours in the next lane's registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tvm import ir, tirx
from tvm.sym import Analyzer

from mfmadsl.passes.main_loop.analysis.loop import Loop
from mfmadsl.passes.main_loop.moves.next_lane import has_none, lanes_of_row
from mfmadsl.passes.tir.expression import numbers

K, X, Y, BLOCK = (tirx.Var(n, "int32") for n in ("k", "threadIdx.x", "threadIdx.y", "block"))


def facts(lanes: int = 64) -> Loop:
    """A loop of workgroups of several waves."""
    analyzer = Analyzer()
    for variable, extent in ((K, 4), (X, lanes), (Y, 4), (BLOCK, 16)):
        analyzer.bind(variable, ir.Range(0, extent))
    threads = {"threadIdx.y": 4, "threadIdx.x": lanes}
    return Loop(K, tirx.const(4, "int32"), analyzer, analyzer, threads)


def place(lanes: int) -> Any:
    """A lane's offset where so many lanes load 16 bytes each of a row of 257 halves."""
    return ((Y * 64 + X) // lanes * 257 + X % lanes * 8) * 2


def found(own: Any, lanes: int = 64) -> int:
    return lanes_of_row(own, 16, facts(lanes))


def alone(conditions: Sequence[Any] = (), lanes: int = 16) -> list[bool]:
    """Of the first wave's lanes, which have no next one with their word, of workgroup 0."""
    expression = has_none(lanes, conditions, facts(), place(lanes))
    assert expression is not None
    at: dict[str, Any] = {"threadIdx.x": np.arange(64), "threadIdx.y": 0, "block": 0}

    def holds(node: Any) -> Any:
        if isinstance(node, tirx.Or):
            return holds(node.a) | holds(node.b)
        if isinstance(node, tirx.Not):
            return ~holds(node.a)
        difference = numbers(node.a - node.b, at)
        return difference == 0 if isinstance(node, tirx.EQ) else difference < 0

    return list(np.broadcast_to(holds(expression), 64))


@pytest.mark.parametrize(
    ("lanes", "of_row"), [(64, 16), (32, 16), (16, 16), (8, 8), (4, 4), (2, 0), (1, 0)]
)
def test_lanes_of_a_row_lie_side_by_side(lanes: int, of_row: int) -> None:
    assert found(place(lanes)) == of_row


def test_rows_of_dpp_have_sixteen_lanes_of_one_wave() -> None:
    assert not found(place(8), lanes=24)
    assert not found((X * 4 + Y) * 16)  # neighbours are in other waves


ROW = BLOCK * 32 + (Y * 64 + X) // 16


def last(lanes: int) -> list[bool]:
    return [n % lanes == lanes - 1 for n in range(64)]


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_the_last_lane_of_each_row_is_alone(lanes: int) -> None:
    assert alone(lanes=lanes) == last(lanes)


def test_conditions_that_are_the_same_for_a_row_are_not_asked_again() -> None:
    assert alone([ROW < 2]) == last(16)
    assert isinstance(has_none(16, [ROW < 2], facts(), place(16)), tirx.EQ)


def test_a_lane_is_alone_where_the_next_one_loads_nothing() -> None:
    column = X % 16 * 8
    assert alone([column < 41]) == [n % 16 >= 5 for n in range(64)]
    assert alone([ROW < 2, column < 41]) == [n % 16 >= 5 for n in range(64)]


def test_what_others_than_threads_choose_is_the_same_for_a_row() -> None:
    """Where it would tell lanes apart, no lane is asked for another one's word."""
    assert not found(place(16) + BLOCK * X * 2)
    assert found(place(16) + BLOCK * 2) == 16


def test_no_lane_no_last_one() -> None:
    assert has_none(16, (), facts(), Y * 32) is None
