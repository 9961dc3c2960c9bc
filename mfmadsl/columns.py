"""Rows of short texts, one below the other."""

from __future__ import annotations

from collections.abc import Sequence


def columns(rows: Sequence[Sequence[str]], right: bool = False) -> str:
    """The rows as lines, each column as wide as its widest text; from the left if not `right`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    )
