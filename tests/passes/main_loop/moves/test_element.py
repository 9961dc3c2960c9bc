"""Which elements lie together, and what is fetched for several of one place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tvm import tirx
from tvm.tirx import BufferLoad, BufferStore, IfThenElse

from mfmadsl.passes.main_loop.moves.element import element, runs, sources
from mfmadsl.passes.tir.error import NotUnderstoodError
from mfmadsl.passes.tir.expression import aligned, conjuncts_of

LANE = tirx.Var("lane", "int32")
MEMORY = tirx.decl_buffer((1 << 16,), "float16", "memory")
TILE = tirx.decl_buffer((4096,), "float16", "tile", scope="shared")
ZERO = tirx.const(0, "float16")


def load(place: Any) -> Any:
    return BufferLoad(MEMORY, [LANE * 8 + place])


def store(place: int, value: Any) -> BufferStore:
    return BufferStore(TILE, value, [LANE * 8 + place])


@given(st.sets(st.integers(0, 40)), st.sampled_from([1, 2, 8]))
def test_runs_are_neighbours_in_order(places: set[int], most: int) -> None:
    items = [LANE * 3 + place for place in sorted(places, reverse=True)]
    found = runs(items, lambda p: p, lambda _: TILE, lambda _: most)
    assert sorted(int(tirx.const(0) + p.b) if isinstance(p, tirx.Add) else 0
                  for run in found for p in run) == sorted(places)  # fmt: skip
    for run in found:
        start = int(run[0].b) if isinstance(run[0], tirx.Add) else 0
        numbers = [int(p.b) if isinstance(p, tirx.Add) else 0 for p in run]
        assert numbers == list(range(start, start + len(run)))
        assert len(run) <= most
        assert len(run) & (len(run) - 1) == 0


def test_two_elements_of_one_place() -> None:
    with pytest.raises(NotUnderstoodError, match="two elements go to one place of `tile`"):
        runs([LANE + 1, LANE + 1], lambda p: p, lambda _: TILE, lambda _: 8)


@given(st.integers(0, 20), st.integers(1, 16), st.sampled_from([1, 2, 4, 8, 16]))
def test_pieces_start_at_multiples_of_their_lengths(first: int, count: int, step: int) -> None:
    run = list(range(first, first + count))
    pieces = list(aligned(run, lambda place: LANE * step + place))
    assert [place for piece in pieces for place in piece] == run
    for piece in pieces:
        assert len(piece) & (len(piece) - 1) == 0
        assert step % len(piece) == 0 or len(piece) == 1
        assert piece[0] % len(piece) == 0
    if first == 0 and step % 16 == 0 and count == 16:
        assert len(pieces) == 1


def test_conditions_of_an_element() -> None:
    inner = tirx.if_then_else(tirx.And(LANE < 3, LANE < 4), load(0), ZERO)
    outer = tirx.if_then_else(LANE < 5, inner, ZERO)
    found = element(IfThenElse(LANE < 60, store(0, outer), None))
    assert [str(c) for c in found.edges] == [str(LANE < 5)]
    assert [str(c) for c in found.inner] == [str(LANE < 3), str(LANE < 4)]
    assert [str(c) for c in found.guards] == [str(LANE < 60)]
    assert found.is_plain
    other = element(store(0, tirx.if_then_else(LANE < 5, load(0), tirx.const(1, "float16"))))
    assert not other.is_plain


def test_one_place_is_fetched_where_any_element_wants_it() -> None:
    first, second, third = LANE < 3, LANE > 7, LANE < 60
    elements = [
        element(store(n, tirx.if_then_else(condition, load(0), ZERO)))
        for n, condition in enumerate((first, second))
    ]
    (source,) = sources(elements)
    (condition,) = source.conditions
    assert str(condition) == str(tirx.Or(first, second))
    assert len(conjuncts_of(condition)) == 1
    (everywhere,) = sources([*elements, element(store(2, load(0)))])
    assert not everywhere.conditions
    (same,) = sources([elements[0], elements[0]])
    assert [str(c) for c in same.conditions] == [str(first)]
    guarded = element(IfThenElse(third, store(3, load(1)), None))
    (source,) = sources([guarded])
    assert [str(c) for c in source.conditions] == [str(third)]
