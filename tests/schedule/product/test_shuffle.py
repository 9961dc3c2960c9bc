"""Shuffled matrices: the order that an index says is found, and is that of NumPy's transposes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer

from mfmadsl.schedule.product.shuffle import Shuffle, shuffle_of

ROW, COLUMN = tirx.Var("i", "int32"), tirx.Var("k", "int32")
Bits = Sequence[tuple[int, int]]


def bits_of_tiles() -> st.SearchStrategy[Bits]:
    """The bits of tiles of up to 16 x 16 in any order, the highest first."""
    sides = st.tuples(st.integers(1, 4), st.integers(1, 4))
    return sides.flatmap(
        lambda each: st.permutations([(axis, 1 << b) for axis in (0, 1) for b in range(each[axis])])
    )


def load(bits: Bits, columns: int) -> TensorLoad:
    """An element of a matrix with a dimension for each bit of a tile, behind those of tiles."""
    tile = [2 ** sum(axis == side for axis, _ in bits) for side in (0, 1)]
    shape = [4, columns, *(2 for _ in bits)]
    within = [(ROW, COLUMN)[axis] // value % 2 for axis, value in bits]
    buffer = tirx.decl_buffer(shape, "uint8", "S")
    return tirx.BufferLoad(buffer, [ROW // tile[0], COLUMN // tile[1], *within])


@given(bits_of_tiles(), st.integers(1, 3))
def test_the_order_of_an_index_is_found(bits: Bits, columns: int) -> None:
    found = shuffle_of(load(bits, columns), [ROW, COLUMN])
    if bits[-1] == (1, 1):
        assert found is None  # neighbours of a row lie together: copies are by rows
        return
    assert found is not None
    assert found.bits[: len(bits)] == tuple(reversed(bits))


@given(bits_of_tiles())
def test_elements_lie_where_numpy_has_them(bits: Bits) -> None:
    shuffle = Shuffle(tuple(reversed(bits)))
    shape = shuffle.rows, shuffle.columns
    numbers = np.empty(shape, int)
    for number in range(numbers.size):
        row, column = (
            sum(
                value * (number >> at & 1)
                for at, (which, value) in enumerate(shuffle.bits)
                if which == axis
            )
            for axis in (0, 1)
        )
        numbers[row, column] = number
    counts = [count for *_, count in shuffle.runs]
    for row, column in np.ndindex(shape):
        place = [int(Analyzer().simplify(x)) for x in shuffle.place(row, column)]
        assert place[:2] == [0, 0]
        assert np.ravel_multi_index(place[2:], counts) == numbers[row, column]


def test_what_is_as_aiter_shuffles_it() -> None:
    places = [ROW // 32, COLUMN // 8, COLUMN % 4, ROW % 16, COLUMN // 4 % 2, ROW // 16 % 2]
    buffer = tirx.decl_buffer([4, 16, 4, 16, 2, 2], "uint8", "S")
    found = shuffle_of(tirx.BufferLoad(buffer, places), [ROW, COLUMN])
    assert found is not None
    tile = found.within(96, 8)
    assert tile is not None
    assert (tile.rows, tile.columns) == (32, 8)
    assert tile.runs == [(1, 1, 4), (0, 1, 16), (1, 4, 2), (0, 16, 2)]
    assert found.within(48, 8) is None
    assert found.within(32, 4) is None


def test_tiles_of_up_to_4096_elements() -> None:
    bits = [(axis, 1 << bit) for bit in range(7, -1, -1) for axis in (1, 0)]
    found = shuffle_of(load(bits, 2), [ROW, COLUMN])
    assert found is not None
    assert (found.rows, found.columns) == (64, 64)


def test_the_row_comes_first_where_a_row_and_a_column_lie_at_one_distance() -> None:
    found = shuffle_of(load([(1, 1), (0, 1)], 1), [ROW, COLUMN])
    assert found is not None
    assert found.bits[:4] == ((0, 1), (1, 1), (0, 2), (0, 4))


def test_rows_in_turn() -> None:
    shuffle = Shuffle(((0, 2), (0, 1), (1, 1)))
    assert shuffle.in_turn(2, 1) == shuffle
    assert shuffle.in_turn(2, 2) == Shuffle(((0, 1), (0, 2), (1, 1)))
    assert shuffle.in_turn(4, 2) is None
    assert shuffle.in_turn(1, 4) == Shuffle(((0, 2), (0, 1), (1, 1)))


def test_other_orders_are_none() -> None:
    rows, columns = tirx.decl_buffer([64, 64], "uint8"), tirx.decl_buffer([64, 64], "uint8")
    assert shuffle_of(tirx.BufferLoad(rows, [ROW, COLUMN]), [ROW, COLUMN]) is None
    assert shuffle_of(tirx.BufferLoad(columns, [COLUMN, ROW]), [ROW, COLUMN]) is not None
    apart = tirx.decl_buffer([64, 96], "uint8")
    assert shuffle_of(tirx.BufferLoad(apart, [ROW, COLUMN * 3 % 96]), [ROW, COLUMN]) is None
