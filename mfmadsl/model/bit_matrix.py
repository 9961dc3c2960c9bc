"""Linear maps of bits: an index map over powers of two is a matrix over GF(2).

Bijectivity is a rank, the inverse is the matrix inverse, composition is a product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mfmadsl.error import ArgumentError


@dataclass(frozen=True)
class BitMatrix:
    """x goes to the xor of `columns[i]` over the bits i that are set in x.

    `columns[i]` is the image of 1 << i, as an integer of `height` bits.
    """

    columns: tuple[int, ...]
    height: int

    @property
    def width(self) -> int:
        """How many bits go in."""
        return len(self.columns)

    def apply(self, x: int) -> int:
        """The image of a number."""
        image = 0
        for bit, column in enumerate(self.columns):
            if x >> bit & 1:
                image ^= column
        return image

    def __matmul__(self, other: BitMatrix) -> BitMatrix:
        """First `other`, then this."""
        if other.height != self.width:
            raise ArgumentError(f"{other.height} bits do not go into {self.width}")
        return BitMatrix(tuple(self.apply(c) for c in other.columns), self.height)

    @property
    def rank(self) -> int:
        """The dimension of the image, over GF(2)."""
        basis: list[int] = []
        for column in self.columns:
            rest = column
            for pivot in basis:
                rest = min(rest, rest ^ pivot)
            if rest:
                basis.append(rest)
        return len(basis)

    def inverse(self) -> BitMatrix:
        """Raises ArgumentError if there is none."""
        if self.width != self.height or self.rank < self.width:
            raise ArgumentError("the map is not one-to-one and onto")
        # Gauss-Jordan on pairs (image, preimage).
        rows = [(column, 1 << bit) for bit, column in enumerate(self.columns)]
        for bit in range(self.height):
            pivot = next(i for i in range(bit, len(rows)) if rows[i][0] >> bit & 1)
            rows[bit], rows[pivot] = rows[pivot], rows[bit]
            image, preimage = rows[bit]
            rows = [
                (a ^ image, b ^ preimage) if i != bit and a >> bit & 1 else (a, b)
                for i, (a, b) in enumerate(rows)
            ]
        return BitMatrix(tuple(preimage for _, preimage in rows), self.width)


def bit_matrix(table: Sequence[int]) -> BitMatrix | None:
    """The matrix of the map that `table` lists, or None if it is no linear one."""
    size = len(table)
    if size & (size - 1) or any(x < 0 for x in table):
        return None
    height = max(table).bit_length()
    columns = tuple(table[1 << bit] for bit in range(size.bit_length() - 1))
    matrix = BitMatrix(columns, height)
    return matrix if all(matrix.apply(x) == y for x, y in enumerate(table)) else None
