"""Positions as editors count them: lines, and code units within a line; and edits by them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

Encoding = Literal["utf-8", "utf-16", "utf-32"]
"""Whose code units a position counts; the protocol's own is UTF-16."""

_LINE_END = re.compile(r"\r\n|\n|\r")


class TextPosition(NamedTuple):
    """Both count from 0; `character` counts code units."""

    line: int
    character: int


class Range(NamedTuple):
    """Two positions, as the protocol has them."""

    start: TextPosition
    end: TextPosition


class Change(NamedTuple):
    """New text for a range, or for all of it where `range` is None."""

    range: Range | None
    text: str


@dataclass(frozen=True)
class Text:
    """A text whose lines end as the protocol says: by LF, CR LF or CR, and nothing else."""

    text: str
    encoding: Encoding = "utf-16"

    @cached_property
    def _lines(self) -> list[tuple[int, int]]:
        """(start, end) of each line, without what ends it."""
        ends = list(_LINE_END.finditer(self.text))
        starts = [0, *(end.end() for end in ends)]
        return list(zip(starts, [*(end.start() for end in ends), len(self.text)], strict=True))

    @cached_property
    def _starts(self) -> list[int]:
        return [start for start, _ in self._lines]

    def position(self, offset: int) -> TextPosition:
        """Where the character `offset` of the text stands; what is outside of it, at its ends."""
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self._starts, offset) - 1
        start, end = self._lines[line]
        return TextPosition(line, _units(self.text[start : min(offset, end)], self.encoding))

    def range(self, start: int, end: int) -> Range:
        """The positions of two offsets."""
        return Range(self.position(start), self.position(end))

    def offset(self, position: TextPosition) -> int:
        """The character at a position: the line's last if it has fewer, the text's if it has.

        Within the units of one character it is that character.
        """
        if position.line < 0:
            return 0
        if position.line >= len(self._lines):
            return len(self.text)
        offset, end = self._lines[position.line]
        if self.text[offset:end].isascii():  # a text may be one line
            return min(offset + max(position.character, 0), end)
        units = 0
        while offset < end:
            units += _units(self.text[offset], self.encoding)
            if units > position.character:
                break
            offset += 1
        return offset

    def changed(self, changes: Iterable[Change]) -> Text:
        """The text after these changes, each of which counts in what the one before it left."""
        text = self
        for change in changes:
            if change.range is None:
                text = Text(change.text, self.encoding)
                continue
            start, end = sorted(text.offset(position) for position in change.range)
            text = Text(text.text[:start] + change.text + text.text[end:], self.encoding)
        return text


@lru_cache(maxsize=16)
def text_of(text: str, encoding: Encoding) -> Text:
    """The same `Text` for the same text, whose lines are counted once."""
    return Text(text, encoding)


def _units(text: str, encoding: Encoding) -> int:
    if text.isascii() or encoding == "utf-32":
        return len(text)
    # Half of a character, which JSON can have, is a unit of UTF-16 and three of UTF-8.
    size = len(text.encode(f"{encoding}-le" if encoding == "utf-16" else encoding, "surrogatepass"))
    return size // 2 if encoding == "utf-16" else size
