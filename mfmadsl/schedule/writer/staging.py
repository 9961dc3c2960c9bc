"""How the threads of a workgroup fetch a tile of one operand and put it into the LDS.

There are two ways, by what lies together in memory:

- `RowStaging`, K together: a thread takes 16 bytes of a row and puts them where they belong.
- `ColumnStaging`, rows together (B as K x N, A as K x M): a thread takes a few k of a few rows,
  turns them around in its registers (`v_perm_b32`), and puts eight bytes of K of each row.

A *unit* is what one thread moves at a time; a tile has `units` of them for each thread. Threads
that have none left fetch past the end, which costs no traffic, and fill rows that nobody reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any, TypeAlias

from mfmadsl.schedule.writer.lds import CHUNK, WORD

Permute: TypeAlias = Callable[[Any, Any, int], Any]
"""`v_perm_b32`: (high, low, selector) to a word of four of their eight bytes."""

PIECE = 8
"""Bytes of K that a thread puts into the LDS at a time after a transposition."""

PAST_THE_END = -(1 << 31)
"""An offset, as an unsigned number, that no buffer reaches."""


def load_width(widest: int, *multiples: int | None) -> int:
    """The widest load that takes only whole, aligned pieces; None is a number not known yet.

    Loads of four bytes and more need alignment to four bytes (CDNA3 ISA, section 9.1.6).
    """
    width = widest
    for number in multiples:
        width = gcd(width, number or 1)
    return width


@dataclass(frozen=True)
class RowStaging:
    """Rows of `row_bytes` lie together in memory.

    `width` is that of a load: 16 where rows are aligned to four bytes, else what they allow.
    """

    rows: int
    row_bytes: int
    element_bytes: int
    threads: int
    width: int = CHUNK

    @property
    def chunks(self) -> int:
        return self.row_bytes // CHUNK

    @property
    def units(self) -> int:
        return -(-self.rows * self.chunks // self.threads)

    @property
    def rows_filled(self) -> int:
        """Rows that the threads fill in the LDS, at least those of the tile."""
        return max(self.rows, self.units * self.threads // self.chunks)

    @property
    def rows_apart(self) -> int:
        """Rows between two units of a thread."""
        return self.threads // self.chunks

    @property
    def loads(self) -> int:
        """Of a unit."""
        return CHUNK // self.width

    def place(self, thread: Any) -> tuple[Any, Any]:
        """(row, chunk) of a thread's first unit."""
        return thread // self.chunks, thread % self.chunks


@dataclass(frozen=True)
class ColumnStaging:
    """Columns of K lie apart, rows together. `width` is that of a load, at most `group_bytes`."""

    rows: int
    row_bytes: int
    element_bytes: int
    threads: int
    width: int

    @property
    def k(self) -> int:
        """k of a unit: eight bytes of them."""
        return PIECE // self.element_bytes

    @property
    def group(self) -> int:
        """Rows of a unit."""
        return group_of(self.element_bytes)

    @property
    def group_bytes(self) -> int:
        return self.group * self.element_bytes

    @property
    def units(self) -> int:
        pieces = self.rows // self.group * (self.row_bytes // PIECE)
        return -(-pieces // self.threads)

    @property
    def rows_filled(self) -> int:
        return max(self.rows, self.units * self.threads * self.group // (self.row_bytes // PIECE))

    @property
    def loads(self) -> int:
        """Of a unit: for each k, the rows of its group."""
        return self.k * (self.group_bytes // self.width)

    @property
    def words(self) -> int:
        """Registers of a unit, before and after it is turned around."""
        return self.k * self.group_bytes // WORD

    def place(self, unit: int, thread: Any) -> tuple[Any, Any, Any]:
        """(group of rows, chunk, half of the chunk).

        Neighbouring threads take the two halves of a chunk, then rows: so they write without
        conflicts, and fetch whole cache lines.
        """
        flat = thread + unit * self.threads
        groups, chunks = self.rows_filled // self.group, self.row_bytes // CHUNK
        # Where few rows leave lanes for several chunks, these are so far apart that their places,
        # which the swizzle changes by the number of the group, stay different.
        spread = flat // 2 // groups * min(groups, chunks)
        return flat // 2 % groups, spread % chunks + spread // chunks, flat % 2


def group_of(element_bytes: int) -> int:
    """Rows that a thread takes together when rows lie together: 16 bytes, or 8 of single bytes."""
    return 8 if element_bytes == 1 else CHUNK // element_bytes


def halves_turned(words: Sequence[Any], row: int, permute: Permute) -> list[Any]:
    """One row of elements of two bytes: of four k, each a word of two rows."""
    selector = (0x05040100, 0x07060302)[row]
    return [permute(words[1], words[0], selector), permute(words[3], words[2], selector)]


def bytes_paired(words: Sequence[Any], rows: int, permute: Permute) -> list[Any]:
    """The first half of turning four k, each a word of four rows: pairs of k, of the first two rows
    or the last two."""
    selector = (0x05010400, 0x07030602)[rows]
    return [permute(words[y + 1], words[y], selector) for y in (0, 2)]


def bytes_turned(pairs: Sequence[Any], row: int, permute: Permute) -> Any:
    """The second half: the four k of one of two rows."""
    return permute(pairs[1], pairs[0], (0x05040100, 0x07060302)[row])
