"""The outline of a text: its layouts and entries, well-formed or not."""

from __future__ import annotations

from typing import NamedTuple

from mfmadsl.editor.scan import items


class OutlineSymbol(NamedTuple):
    """An item of a kind, such as "layout": its characters, and those of its name within them."""

    kind: str
    name: str
    start: int
    end: int
    name_start: int
    name_end: int


def symbols(text: str) -> list[OutlineSymbol]:
    """Every item of a text that has a name, in order, but for `use`."""
    return [
        OutlineSymbol(
            item.keyword.text, item.name.text, item.keyword.start, item.end,
            item.name.start, item.name.end,
        )
        for item in items(text)
        if item.name is not None and item.keyword.text != "use"
    ]  # fmt: skip
