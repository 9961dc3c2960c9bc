"""The counters of memory instructions under way, as the immediate of `s_waitcnt` has them."""

from __future__ import annotations

from dataclasses import dataclass

from mfmadsl.error import ArgumentError


@dataclass(frozen=True)
class WaitCounter:
    """One counter: its name, and the (first bit, number of bits) of each piece of its field.

    The pieces are in the order of the number's own bits, from the lowest on.
    """

    name: str
    pieces: tuple[tuple[int, int], ...]

    @property
    def largest(self) -> int:
        """How many instructions it can count; waiting for so many is not waiting at all."""
        return (1 << sum(bits for _, bits in self.pieces)) - 1

    def encoded(self, count: int) -> int:
        """The bits of an immediate that wait until so many instructions are left."""
        if not 0 <= count <= self.largest:
            raise ArgumentError(f"{self.name} counts from 0 to {self.largest}, not {count}")
        found = 0
        for first, bits in self.pieces:
            found |= (count & (1 << bits) - 1) << first
            count >>= bits
        return found

    def decoded(self, immediate: int) -> int:
        """How many instructions an immediate leaves under way."""
        found, low = 0, 0
        for first, bits in self.pieces:
            found |= (immediate >> first & (1 << bits) - 1) << low
            low += bits
        return found
