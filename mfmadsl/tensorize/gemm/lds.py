"""The tile of one operand in the LDS: which word holds what, and how threads and lanes reach it.

A row of the tile is `row_bytes` of K, cut into chunks of 16 bytes, the widest that one LDS access
takes. Which of its places a chunk takes depends on the row (swizzle), so that the lanes that go
together in one cycle hit different banks, when they write as when they read.

All functions take Python integers and expressions of TVM alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CHUNK = 16
"""Bytes of the widest LDS access of a lane."""

WORD = 4


@dataclass(frozen=True)
class Swizzle:
    """Row r keeps chunk c in place c ^ f(r): f(r) = ((r >> shift) ^ (r >> (shift + 3))) & mask.

    f is linear over GF(2): f(r + s) = f(r) ^ f(s) where r and s share no bit.
    """

    shift: int
    mask: int

    def __call__(self, row: Any) -> Any:
        if not self.mask:
            return row & 0
        return ((row >> self.shift) ^ (row >> (self.shift + 3))) & self.mask


NO_SWIZZLE = Swizzle(0, 0)


def swizzle_for(row_bytes: int, banks: int) -> Swizzle:
    """The one without bank conflicts, for reads that see so many banks of four bytes at once.

    Rows that fit into the banks together need no other place; so many are skipped by the shift.
    """
    width = banks * WORD
    rows_at_once = max(1, width // row_bytes)
    return Swizzle(rows_at_once.bit_length() - 1, min(row_bytes, width) // CHUNK - 1)


@dataclass(frozen=True)
class LdsTile:
    """`rows` rows of `row_bytes`, from word `first_word` of the LDS."""

    rows: int
    row_bytes: int
    swizzle: Swizzle
    first_word: int = 0

    @property
    def chunks(self) -> int:
        """Of a row."""
        return self.row_bytes // CHUNK

    @property
    def bytes(self) -> int:
        return self.rows * self.row_bytes

    def word(self, row: Any, chunk: Any) -> Any:
        """The word where a chunk starts."""
        place = chunk ^ self.swizzle(row)
        return self.first_word + (row * self.chunks + place) * (CHUNK // WORD)
