"""What a loop over K reads of memory, as far as the time of a tiling depends on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from mfmadsl.schedule.matrix_core.tiling.resources import KBytes
from mfmadsl.schedule.product.prologue import SourceArray


@dataclass(frozen=True)
class MemoryRead:
    """An operand, or what belongs to one: for rows of C (`side` 0) or its columns (1).

    Each k of a row has `k_bytes`. Of a row `together` neighbouring k lie together, and next to them
    those of the next row; None if all of a row do. Where an element is computed on its way,
    `stored` has the arrays that it is made of, and `work` the instructions. What lies together
    begins at multiples of `alignment` bytes, which is None where that is not known.
    """

    side: int
    k_bytes: float
    together: float | None = None
    stored: tuple[SourceArray, ...] = ()
    work: float = 0
    alignment: int | None = None

    @property
    def sources(self) -> tuple[float, ...]:
        """The bytes of one k of a row in memory, of each array."""
        return tuple(each.k_bytes for each in self.stored) or (self.k_bytes,)

    def line_bytes(self, rows: float, depth: int, line: int) -> float:
        """The bytes of the lines of memory in which so many k of so many rows lie."""
        if self.stored:
            return sum(each.line_bytes(rows, depth, line) for each in self.stored)
        if self.together is None:
            return rows * self._of_one(depth * self.k_bytes, line)
        whole, times = rows * self.together, depth / self.together
        return times * self._of_one(whole * self.k_bytes, line)

    def asked_bytes(self, rows: float, depth: int, fragment: int, line: int) -> float:
        """The bytes of the lines that loads of fragments ask for, of so many rows and `depth` k of
        which a fragment has some: what changes within one takes a load for each, and each load asks
        for its lines anew."""
        found = 0.0
        for each in self.stored or (
            SourceArray(self.k_bytes, 1.0, 1.0, self.together is not None),
        ):
            of_load = fragment if each.per_k * fragment >= 1 else depth
            found += each.line_bytes(rows, of_load, line) * depth / of_load
        return found

    def _of_one(self, length: float, line: int) -> float:
        """The bytes of the lines in which so many bytes lie together, on the average: where they
        do not begin with a line, they end in one more."""
        more = 0 if self.alignment is None else line - gcd(self.alignment, line)
        return max(line, length + more)


def k_bytes_of(reads: Sequence[MemoryRead]) -> KBytes:
    """The bytes of one k of both sides."""
    a, b = (sum(each.k_bytes for each in reads if each.side == side) for side in (0, 1))
    return a, b
