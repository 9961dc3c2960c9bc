"""Rows of cells as columns of text."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def aligned(rows: Sequence[Sequence[str]], words: Collection[str]) -> str:
    """Columns, of which those whose head is one of `words` are on the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = {number for number, head in enumerate(rows[0]) if head in words}
    return "\n".join(
        "  ".join(
            cell.ljust(width) if number in left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
