"""A swizzle moves each element to a place of its own, and indices are where it lies."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tvm import tirx

from mfmadsl.passes.main_loop.lds.places import Places, Swizzle, Term, known_bits, swizzled
from mfmadsl.passes.tir.expression import multiple_of, numbers

LENGTH = 4096
TILE = tirx.decl_buffer((LENGTH,), "float16", "tile", scope="shared")
THREADS = {"lane": 64, "wave": 4}
LANE, WAVE = tirx.Var("lane", "int32"), tirx.Var("wave", "int32")


@st.composite
def terms(draw: Any) -> Term:
    """The bits that are moved lie below those that they are made of."""
    width, left = draw(st.integers(1, 4)), draw(st.integers(0, 4))
    return Term(draw(st.integers(left + width, 12 - width)), (1 << width) - 1, left)


SWIZZLES: Any = (
    st.lists(terms(), min_size=1, max_size=2)
    .map(tuple)
    .filter(lambda s: all(t.left + t.mask.bit_length() <= min(u.right for u in s) for t in s))
)


@given(SWIZZLES)
def test_a_swizzle_is_one_to_one(swizzle: Swizzle) -> None:
    places = np.arange(LENGTH)
    assert (np.sort(places ^ swizzled(places, swizzle)) == places).all()


@given(
    SWIZZLES, st.sampled_from([1, 2, 8, 12, 16, 64]), st.sampled_from([0, 3, 64, 1024]),
    st.lists(st.integers(0, 700) | st.integers(0, 90).map(lambda x: x * 8), min_size=1, max_size=4),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_an_index_is_the_place_moved(
    swizzle: Swizzle, of_lane: int, of_wave: int, several: list[int], split: bool, lean: bool
) -> None:
    """Also if other places of the same buffer share an address with it."""
    places = Places({TILE.__chandle__(): swizzle}, THREADS, lean)
    lane = tirx.floordiv(LANE, 16) * 256 + tirx.floormod(LANE, 16) * of_lane
    for fixed in several:
        place = (lane if split else LANE * of_lane) + WAVE * of_wave + fixed
        with mock.patch("mfmadsl.passes.tir.device.renewed", lambda value: value):
            index = places.index(place, TILE)
        values: dict[str, Any] = {"lane": np.arange(64)[:, None], "wave": np.arange(4)}
        plain = numbers(place, values)
        for bind in places.binds:
            values[bind.var.name] = numbers(bind.value, values)
        moved = np.broadcast_to(numbers(index, values), (64, 4))
        assert (moved == plain ^ swizzled(plain, swizzle)).all()


def test_a_place_that_is_asked_for_again_is_not_computed_again() -> None:
    places = Places({TILE.__chandle__(): (Term(6, 7, 3),)}, THREADS)
    for fixed in (0, 1024, 2048):
        places.index(LANE * 8 + fixed, TILE)
    count = len(places.binds)
    for fixed in (0, 1024, 2048):
        places.index(LANE * 8 + fixed, TILE)
    assert len(places.binds) == count


@given(st.sampled_from([1, 3, 8, 24]), st.integers(0, 100), st.sampled_from([1, 2, 8, 16]))
def test_no_bit_is_set_that_is_not_known(factor: int, fixed: int, divisor: int) -> None:
    lanes = {"lane": np.arange(64)}
    for expression in (
        LANE * factor + fixed, tirx.floordiv(LANE * factor, divisor) + fixed,
        tirx.floormod(LANE + fixed, divisor) * factor, (LANE >> 2) & fixed, LANE ^ fixed,
    ):  # fmt: skip
        bits = known_bits(expression, THREADS)
        assert bits is None or not (numbers(expression, lanes) & ~bits).any()


def test_places_that_differ_by_a_constant_share_an_address() -> None:
    """Wherever the constant stands in the sum: simplified ones have it anywhere."""
    places = Places({TILE.__chandle__(): (Term(7, 7, 4),)}, THREADS)
    lane = tirx.floordiv(LANE, 32) * 2048 + tirx.floormod(LANE, 4) * 4
    for place in (lane + WAVE * 8192, lane + 32768 + WAVE * 8192, 65536 + lane + WAVE * 8192):
        places.index(place, TILE)
    assert len(places.binds) == 1


def test_tvm_can_tell_that_an_index_is_aligned() -> None:
    """It says so to LLVM, which reads 16 bytes at once then; of an XOR it could not tell."""
    places = Places({TILE.__chandle__(): (Term(6, 7, 3),)}, THREADS)
    index = places.index(LANE * 8 + WAVE * 512 + 4096, TILE)
    assert multiple_of(index) == 8
