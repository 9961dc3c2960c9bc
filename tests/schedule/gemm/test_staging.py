"""Threads move every chunk of a tile once, and turn rows around."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.schedule.writer.staging import (
    ColumnStaging,
    RowStaging,
    bytes_paired,
    bytes_turned,
    group_of,
    halves_turned,
    load_width,
)

ROWS = st.sampled_from([16, 32, 64, 128, 256])
ROW_BYTES = st.sampled_from([32, 64, 128, 256])
THREADS = st.sampled_from([64, 128, 256, 512])


@given(ROWS, ROW_BYTES, THREADS)
def test_rows_are_moved_once(rows: int, row_bytes: int, threads: int) -> None:
    staging = RowStaging(rows, row_bytes, 2, threads)
    places = []
    for unit, thread in itertools.product(range(staging.units), range(threads)):
        row, chunk = staging.place(thread)
        places.append((row + unit * staging.rows_apart, chunk))
    filled = itertools.product(range(staging.rows_filled), range(staging.chunks))
    assert sorted(places) == sorted(filled)
    assert staging.rows_filled >= rows


@given(ROWS, ROW_BYTES, THREADS, st.sampled_from([1, 2, 4, 8]))
def test_columns_are_moved_once(rows: int, row_bytes: int, threads: int, size: int) -> None:
    staging = ColumnStaging(rows, row_bytes, size, threads, group_of(size) * size)
    places = [
        staging.place(unit, thread) for unit in range(staging.units) for thread in range(threads)
    ]
    groups = range(staging.rows_filled // staging.group)
    assert sorted(places) == sorted(itertools.product(groups, range(row_bytes // 16), range(2)))
    assert staging.rows_filled >= rows


def permute(high: int, low: int, selector: int) -> int:
    """V_PERM_B32 (CDNA3 ISA, section 12.12): bytes 0 to 3 are the second operand's."""
    source = [*low.to_bytes(4, "little"), *high.to_bytes(4, "little")]
    return int.from_bytes((source[s] for s in selector.to_bytes(4, "little")), "little")


def words(values: np.ndarray) -> list[int]:
    return [int(word) for word in np.ascontiguousarray(values).view(np.uint32).reshape(-1)]


def test_halves_are_turned_around() -> None:
    block = np.arange(8, dtype=np.uint16).reshape(4, 2)  # four k of two rows
    columns = words(block)
    for row in range(2):
        assert halves_turned(columns, row, permute) == words(block[:, row])


def test_bytes_are_turned_around() -> None:
    block = np.arange(16, dtype=np.uint8).reshape(4, 4)
    columns = words(block)
    for row in range(4):
        pairs = bytes_paired(columns, row // 2, permute)
        assert [bytes_turned(pairs, row % 2, permute)] == words(block[:, row])


@pytest.mark.parametrize(
    ("widest", "multiples", "width"),
    [(16, (64,), 16), (16, (24,), 8), (16, (6,), 2), (16, (7,), 1), (2, (64, 6), 2),
     (16, (None,), 1)],
)  # fmt: skip
def test_loads_take_whole_pieces(
    widest: int, multiples: tuple[int | None, ...], width: int
) -> None:
    assert load_width(widest, *multiples) == width
