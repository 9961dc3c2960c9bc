"""Every tile is computed once, and neighbours share a die."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.schedule.writer.order import by_die, in_groups


def tile_of(number: int, rows: int, columns: int, dies: int, group: int) -> tuple[int, int]:
    tile: tuple[int, int] = in_groups(by_die(number, rows * columns, dies), rows, columns, group)
    return tile


EXTENT = st.integers(1, 40)


@given(EXTENT, EXTENT, st.sampled_from([1, 8]), st.integers(1, 16))
def test_tiles_are_dealt_out_once(rows: int, columns: int, dies: int, group: int) -> None:
    tiles = [tile_of(number, rows, columns, dies, group) for number in range(rows * columns)]
    assert sorted(tiles) == [(i, j) for i in range(rows) for j in range(columns)]


def test_a_die_has_a_compact_part_of_c() -> None:
    """16 x 16 tiles for eight dies: each gets 32 that touch 8 rows and 4 columns."""
    of_die = [tile_of(number, 16, 16, 8, 8) for number in range(0, 256, 8)]
    rows, columns = ({tile[axis] for tile in of_die} for axis in (0, 1))
    assert (len(rows), len(columns)) == (8, 4)
