"""What goes from memory straight into the LDS: a wave's lanes fill it one after another."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import tirx

from mfmadsl.passes.main_loop.lds.places import Swizzle, Term
from mfmadsl.passes.main_loop.moves.direct import direct_load
from mfmadsl.passes.main_loop.moves.element import Element
from mfmadsl.passes.main_loop.moves.put import Put
from tests.passes.main_loop.moves.test_fetch import LANE, K, facts

MEMORY = tirx.decl_buffer((1 << 16,), "float32", "A")
TILE = tirx.decl_buffer((1 << 12,), "float32", "tile", scope="shared")


def is_direct(swizzle: Swizzle = (), chunk: int = 4, place: Any = None) -> bool:
    """Whether lanes that copy so many words each do so straight into the LDS."""
    start = LANE * chunk if place is None else place
    run = tuple(
        Element(TILE, start + n, tirx.BufferLoad(MEMORY, [LANE * chunk + n]), ())
        for n in range(chunk)
    )
    return direct_load(Put(run, {}, K, start), LANE, swizzle, facts(), True, 0) is not None


@pytest.mark.parametrize("chunk", [1, 4])
def test_lanes_side_by_side_fill_it(chunk: int) -> None:
    assert is_direct(chunk=chunk)
    assert not is_direct(chunk=chunk, place=LANE * chunk * 2)


def test_words_are_loaded_one_or_four_at_a_time() -> None:
    assert [chunk for chunk in (1, 2, 4) if is_direct(chunk=chunk)] == [1, 4]


@pytest.mark.parametrize(
    ("term", "possible"),
    [
        (Term(5, 3, 2), True),  # lanes 0 to 3 of four words each change places
        (Term(9, 7, 5), True),  # lanes 8 to 56
        (Term(9, 7, 6), False),  # and those of another wave
        (Term(5, 3, 1), False),  # words of one lane
        (Term(3, 3, 2), False),  # by what the lanes of this very swizzle change
    ],
)
def test_a_swizzle_is_lanes_of_one_wave_in_each_others_places(term: Term, possible: bool) -> None:
    assert is_direct((term,)) == possible


def test_two_terms_do_not_change_what_they_are_made_of() -> None:
    assert is_direct((Term(8, 3, 2), Term(10, 3, 4)))
    assert not is_direct((Term(4, 3, 2), Term(8, 3, 4)))
