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

GRANULE = 16
"""Neighbours that a transposing read takes together."""

_BANK_BYTES = 256  # of the 64 banks of the chip that has such reads


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


@dataclass(frozen=True)
class TransposedTile:
    """`k_step` rows of K, each of `rows` neighbours, for reads that transpose (gfx950).

    Such a read takes, for 16 lanes, a few k of 16 neighbours; 32 lanes go at once. Which of its
    places a granule of 16 neighbours takes depends on k, so that they hit different banks.
    """

    rows: int
    k_step: int
    element_bytes: int
    first_word: int = 0
    swizzled: bool = True

    @property
    def bytes(self) -> int:
        return self.rows * self.k_step * self.element_bytes

    @property
    def k_at_once(self) -> int:
        """k that one read gives a lane: eight bytes of them."""
        return 8 // self.element_bytes

    def swizzle(self, k: Any) -> Any:
        """Granule g of row k is in place g ^ swizzle(k): linear over GF(2).

        It depends on those of the read's k that the banks do not tell apart already, and on which
        chunk of K it is: a read of 16 rows takes two of them at once.
        """
        apart = max(1, _BANK_BYTES // (self.rows * self.element_bytes))
        of_next_group = CHUNK // self.element_bytes
        place = k % self.k_at_once // apart * 2 + k // of_next_group % 2
        return place & (self.rows // GRANULE - 1 if self.swizzled else 0)

    def word(self, k: Any, row: Any) -> Any:
        """The word where an element lies, or starts."""
        place = (row // GRANULE) ^ self.swizzle(k)
        element = k * self.rows + place * GRANULE + row % GRANULE
        return self.first_word + element * self.element_bytes // WORD
