"""Grids as an SVG picture that needs nothing else: for a page, a paper, a colleague."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from mfmadsl.report.picture.colour import hex_colour
from mfmadsl.report.picture.grid import Cell, Grid

_CHARACTER, _HEIGHT = 6.1, 18  # of text of ten pixels in a monospaced font
_PADDING, _GAP, _HEAD, _EDGE = 6, 24, 44, 12
_WIDEST = 2400  # pixels, beyond which grids stand below each other
_STYLE = (
    "text{font:10px ui-monospace,monospace;fill:#111}"
    ".t{font:bold 13px system-ui,sans-serif;fill:#555}.n{fill:#777}"
    "rect{stroke:#fff;stroke-width:.6}.e{fill:none;stroke:#bbb;stroke-dasharray:2}"
    ".m{stroke:#111;stroke-width:1.6}"
)


def svg(grids: Sequence[Grid]) -> str:
    """One picture of all grids, next to each other as long as there is room.

    Each cell has its `tip` as a title, which browsers show under the pointer.
    """
    parts: list[str] = []
    left = top = right = lowest = 0.0
    for grid in grids:
        width, height = _extent(grid)
        if left and left + width > _WIDEST:
            left, top = 0.0, lowest + _GAP
        parts.append(f'<g transform="translate({left:g},{top:g})">{"".join(_drawn(grid))}</g>')
        right, lowest = max(right, left + width), max(lowest, top + height)
        left += width + _GAP
    width, height = right + 2 * _EDGE, lowest + 2 * _EDGE
    box = f"{-_EDGE} {-_EDGE} {width:g} {height:g}"
    size = f'width="{width:g}" height="{height:g}" viewBox="{box}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{_STYLE}</style>'
    return head + "\n" + "\n".join(parts) + "\n</svg>\n"


def _extent(grid: Grid) -> tuple[float, float]:
    width = _margin(grid) + _cell_width(grid) * len(grid.columns)
    title = _PADDING + 8.2 * len(grid.title)
    return max(width, title), _HEAD + _HEIGHT * len(grid.rows)


def _margin(grid: Grid) -> float:
    named = max(map(len, (*grid.rows, f"{grid.down}, {grid.across}")))
    return round(_CHARACTER * named + _PADDING, 1)


def _cell_width(grid: Grid) -> float:
    longest = max(len(cell.label) for row in grid.cells for cell in row)
    return round(_CHARACTER * max(longest, *map(len, grid.columns)) + _PADDING, 1)


def _drawn(grid: Grid) -> Iterator[str]:
    margin, width = _margin(grid), _cell_width(grid)
    yield _text(0, 14, grid.title, "t", "start")
    yield _text(0, _HEAD - 8, f"{grid.down}, {grid.across}", "n", "start")
    for number, name in enumerate(grid.columns):
        yield _text(margin + width * (number + 0.5), _HEAD - 8, name, "n")
    marked = []
    for row, (name, cells) in enumerate(zip(grid.rows, grid.cells, strict=True)):
        top = _HEAD + _HEIGHT * row
        yield _text(margin - _PADDING, top + 13, name, "n", "end")
        for column, cell in enumerate(cells):
            drawn = _cell(cell, grid, margin + width * column, top, width)
            if cell.marked:
                marked.append(drawn)  # last, so that no neighbour covers its frame
            else:
                yield drawn
    yield from marked


def _cell(cell: Cell, grid: Grid, left: float, top: float, width: float) -> str:
    kind = "" if cell.shade is None else f' fill="{hex_colour(cell.shade, grid.shades)}"'
    named = " ".join(["e"] * (cell.shade is None) + ["m"] * cell.marked)
    box = f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{_HEIGHT}"{kind}'
    box += f' class="{named}"/>' if named else "/>"
    label = _text(left + width / 2, top + 13, cell.label, "")
    return f"<g><title>{escape(cell.tip)}</title>{box}{label}</g>"


def _text(x: float, y: float, text: str, kind: str, anchor: str = "middle") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{named}>{escape(text)}</text>'
