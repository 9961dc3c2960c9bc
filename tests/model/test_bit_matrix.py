"""Laws of linear maps of bits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.model import BitMatrix, bit_matrix

squares = st.integers(1, 7).flatmap(
    lambda n: st.lists(st.integers(0, 2**n - 1), min_size=n, max_size=n).map(
        lambda columns: BitMatrix(tuple(columns), n)
    )
)


def table(matrix: BitMatrix) -> list[int]:
    return [matrix.apply(x) for x in range(1 << matrix.width)]


@given(squares)
def test_full_rank_is_one_to_one(matrix: BitMatrix) -> None:
    assert len(set(table(matrix))) == 1 << matrix.rank


@given(squares)
def test_the_inverse_undoes_the_map_or_there_is_none(matrix: BitMatrix) -> None:
    if matrix.rank < matrix.width:
        with pytest.raises(ValueError, match="not one-to-one"):
            matrix.inverse()
        return
    identity = list(range(1 << matrix.width))
    assert table(matrix.inverse() @ matrix) == table(matrix @ matrix.inverse()) == identity


@given(squares, st.data())
def test_a_product_is_one_map_after_the_other(first: BitMatrix, data: st.DataObject) -> None:
    height = data.draw(st.integers(1, 6))
    column = st.integers(0, 2**height - 1)
    columns = data.draw(st.lists(column, min_size=first.height, max_size=first.height))
    second = BitMatrix(tuple(columns), height)
    both = second @ first
    assert table(both) == [second.apply(first.apply(x)) for x in range(1 << first.width)]


@given(squares)
def test_a_table_of_a_linear_map_gives_its_matrix(matrix: BitMatrix) -> None:
    found = bit_matrix(table(matrix))
    assert found is not None
    assert found.columns == matrix.columns


@pytest.mark.parametrize("values", [[0, 1, 2], [1, 0], [0, 1, 2, 4], [0, 1, 2, 3, 0, 1]])
def test_other_tables_have_none(values: list[int]) -> None:
    assert bit_matrix(values) is None


def test_shapes_must_fit() -> None:
    with pytest.raises(ValueError, match="3 bits do not go into 2"):
        BitMatrix((1, 2), 2) @ BitMatrix((1, 2, 4), 3)
