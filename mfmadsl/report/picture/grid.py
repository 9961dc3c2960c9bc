"""What a picture of a layout shows, whatever draws it: cells in rows and columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """`label` says in short what `tip` says in words; `shade` is the number of its colour among
    those of the grid, or None where nothing lies. A `marked` cell has a frame."""

    label: str
    shade: int | None = None
    tip: str = ""
    marked: bool = False


@dataclass(frozen=True)
class Grid:
    """Cells of a matrix, or of registers; `down` and `across` say what rows and columns count."""

    title: str
    down: str
    across: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]
    shades: int


def grid_of(
    title: str,
    axes: tuple[str, str],
    extents: tuple[int, int],
    shades: int,
    cell: Callable[[int, int], Cell],
    columns: Iterable[str] = (),
) -> Grid:
    """A grid from a function of row and column; columns are numbered if they have no names."""
    rows, count = extents
    return Grid(
        title,
        *axes,
        tuple(map(str, range(rows))),
        tuple(columns) or tuple(map(str, range(count))),
        tuple(tuple(cell(row, column) for column in range(count)) for row in range(rows)),
        shades,
    )
