"""Which loads surely end in their buffer, by every rule for the end of a buffer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tvm import tirx

from mfmadsl.passes.main_loop.moves.edge import Edges, Stays, edges_of, stays_inside
from mfmadsl.passes.main_loop.moves.element import MemorySource
from tests.passes.main_loop.moves.test_fetch import LANE, K, facts

NOWHERE, EVERYWHERE = Stays(before_last=False, always=False), Stays(before_last=True, always=True)


def run_of(
    elements: int, place: tirx.Expr, *conditions: tirx.Expr
) -> tuple[list[MemorySource], Edges]:
    """Eight halves of a buffer, and their edges."""
    buffer = tirx.decl_buffer((elements,), "float16", "A")
    run = [MemorySource(buffer, place + n, conditions) for n in range(8)]
    return run, edges_of(run, facts(), exact=False, exchanged={})


@pytest.mark.parametrize(("elements", "stays"), [(514, EVERYWHERE), (513, NOWHERE)])
def test_the_words_around_halves_end_a_word_later(elements: int, stays: Stays) -> None:
    """The last lane starts at byte 1010: the words around 16 bytes are those from 1008 to 1027."""
    run, edges = run_of(elements, LANE * 8 + 1)
    assert stays_inside(run, facts(), edges, is_shifted=True) == stays


@pytest.mark.parametrize(("elements", "stays"), [(512, EVERYWHERE), (511, NOWHERE)])
def test_where_only_the_first_element_was_asked(elements: int, stays: Stays) -> None:
    run, edges = run_of(elements, LANE * 8)
    passing = replace(edges, passes_end=True)
    assert stays_inside(run, facts(), passing, is_shifted=False) == stays


def test_what_the_conditions_send_away_does_not_count() -> None:
    run, edges = run_of(256, LANE * 8, LANE < 32)
    assert stays_inside(run, facts(), replace(edges, passes_end=True), is_shifted=False).always
    run, edges = run_of(248, LANE * 8, LANE < 32)
    assert stays_inside(run, facts(), replace(edges, passes_end=True), is_shifted=False) == NOWHERE


def test_loads_that_ask_for_each_element_need_no_proof() -> None:
    run, edges = run_of(8, LANE * 8 + K)
    asked = replace(edges, passes_end=False)
    assert stays_inside(run, facts(), asked, is_shifted=False) == EVERYWHERE
