"""Grids as text: nothing is lost in bands or under colours."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.report.picture.colour import rgb
from mfmadsl.report.picture.grid import Cell, Grid, grid_of
from mfmadsl.report.picture.text import grid_text, grids_text

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def numbered(rows: int, columns: int) -> Grid:
    return grid_of(
        "numbers", ("i", "k"), (rows, columns), rows * columns,
        lambda row, column: Cell(f"<{row}.{column}>", row * columns + column),
    )  # fmt: skip


@given(st.integers(1, 12), st.integers(1, 40), st.integers(1, 200))
def test_bands_have_every_cell_once_in_order_and_fit(rows: int, columns: int, width: int) -> None:
    text = grid_text(numbered(rows, columns), width)
    for row in range(rows):
        found = re.findall(rf"<{row}\.\d+>", text)
        assert found == [f"<{row}.{column}>" for column in range(columns)]
    one_column = len(grid_text(numbered(rows, columns), 1).splitlines()[0])
    assert max(map(len, text.splitlines())) <= max(width, one_column)


def test_without_a_width_there_is_one_band() -> None:
    assert len(grid_text(numbered(3, 500)).splitlines()) == 5


@given(st.integers(1, 5), st.integers(1, 9))
def test_colours_change_no_character(rows: int, columns: int) -> None:
    grid = numbered(rows, columns)
    coloured = grid_text(grid, colours=True)
    assert ESCAPE.sub("", coloured) == grid_text(grid)
    assert len(set(ESCAPE.findall(coloured))) == rows * columns + 1


def test_what_holds_nothing_has_no_colour() -> None:
    grid = grid_of("empty", ("i", "k"), (1, 1), 1, lambda *_: Cell("x"))
    assert "\x1b" not in grid_text(grid, colours=True)


def test_several_grids_have_their_titles() -> None:
    assert grids_text([numbered(1, 1), numbered(1, 1)]).count("numbers\n") == 2
    assert "numbers" not in grids_text([numbered(1, 1)])


@given(st.integers(1, 512))
def test_colours_are_light_enough_for_black_text(shades: int) -> None:
    """The contrast is at least 7 to 1 (WCAG 2.2, relative luminance)."""

    def linear(part: int) -> float:
        share = part / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    for shade in range(shades):
        red, green, blue = map(linear, rgb(shade, shades))
        luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
        assert (luminance + 0.05) / 0.05 >= 7
