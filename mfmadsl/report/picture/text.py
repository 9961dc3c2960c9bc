"""Grids as text: in bands that fit a window, with colours where a terminal shows them."""

from __future__ import annotations

from collections.abc import Sequence

from mfmadsl.report.picture.colour import rgb
from mfmadsl.report.picture.grid import Cell, Grid


def grids_text(grids: Sequence[Grid], width: int | None = None, colours: bool = False) -> str:
    """Grids below each other, each with its title unless it is alone."""
    texts = [grid_text(grid, width, colours) for grid in grids]
    if len(grids) == 1:
        return texts[0]
    return "\n\n".join(f"{g.title}\n{text}" for g, text in zip(grids, texts, strict=True))


def grid_text(grid: Grid, width: int | None = None, colours: bool = False) -> str:
    """A grid as a table; one that is wider than `width` goes on below, in further bands.

    With `colours` cells have the escape sequences of terminals (ECMA-48, with 24 bits a colour).
    """
    labels = [*grid.columns, *(cell.label for row in grid.cells for cell in row)]
    cell_width = max(map(len, labels))
    margin = max(map(len, grid.rows))
    fitting = len(grid.columns)
    if width is not None:
        fitting = max(1, (width - margin - 2) // (cell_width + 1))
    bands = [
        _band(grid, first, min(first + fitting, len(grid.columns)), margin, cell_width, colours)
        for first in range(0, len(grid.columns), fitting)
    ]
    return "\n\n".join(bands)


def _band(
    grid: Grid, first: int, end: int, margin: int, cell_width: int, colours: bool
) -> str:  # fmt: skip
    head = " " * margin + " | " + " ".join(f"{c:>{cell_width}}" for c in grid.columns[first:end])
    lines = [head, "-" * (margin + 1) + "+" + "-" * (len(head) - margin - 2)]
    for name, row in zip(grid.rows, grid.cells, strict=True):
        cells = " ".join(_cell(each, cell_width, grid, colours) for each in row[first:end])
        lines.append(f"{name:>{margin}} | {cells}".rstrip())
    return "\n".join(lines)


def _cell(cell: Cell, width: int, grid: Grid, colours: bool) -> str:
    text = f"{cell.label:>{width}}"
    if not colours or cell.shade is None:
        return text
    red, green, blue = rgb(cell.shade, grid.shades)
    bold = "1;" if cell.marked else ""
    return f"\x1b[{bold}38;2;0;0;0;48;2;{red};{green};{blue}m{text}\x1b[0m"
