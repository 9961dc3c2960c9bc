"""Matrices that are shuffled in memory: tiles lie together, in another order than by rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import Expr, Var

from mfmadsl.passes.tir.expression import constant
from mfmadsl.schedule.product.memory import offset_of
from mfmadsl.schedule.product.nest import substitute

_MOST_BITS = 12  # of a tile: 4096 elements


@dataclass(frozen=True)
class Shuffle:
    """The order of a matrix whose tiles, of `rows` x `columns`, lie together each.

    `bits` says what each bit of an element's number in its tile is, the lowest first: of the row
    (0) or of the column (1), and the value of the bit there.
    """

    bits: tuple[tuple[int, int], ...]

    @property
    def rows(self) -> int:
        """Its rows."""
        return prod(2 for axis, _ in self.bits if axis == 0)

    @property
    def columns(self) -> int:
        """Its columns."""
        return prod(2 for axis, _ in self.bits if axis == 1)

    @property
    def runs(self) -> list[tuple[int, int, int]]:
        """What bits that follow each other are, the highest first: (axis, value of the lowest one,
        how many values they have)."""
        found: list[tuple[int, int, int]] = []
        for axis, value in self.bits:
            if found and found[-1][0] == axis and found[-1][1] * found[-1][2] == value:
                found[-1] = (axis, found[-1][1], found[-1][2] * 2)
            else:
                found.append((axis, value, 2))
        return found[::-1]

    def within(self, rows: int, columns: int) -> Shuffle | None:
        """The order in the largest tiles of which so many rows and columns are a whole number."""
        found: Shuffle | None = self
        while found is not None and (rows % found.rows or columns % found.columns):
            found = _largest(found.bits[:-1])
        return found

    def in_turn(self, width: int, count: int) -> Shuffle | None:
        """The order if row `x * count + y` of each `width * count` is called `y * width + x`.

        None if tiles, which have a power of two of rows, are not made of so many.
        """
        whole = width * count
        if self.rows % whole:
            return None

        def there(axis: int, value: int) -> tuple[int, int]:
            if axis or value >= whole:
                return axis, value
            return axis, value * width if value < count else value // count

        return Shuffle(tuple(there(*bit) for bit in self.bits))

    def place(self, row: Expr, column: Expr) -> list[Expr]:
        """(tile's row, tile's column, place in the tile by its runs) of an element."""
        whole = [tirx.floordiv(row, self.rows), tirx.floordiv(column, self.columns)]
        return whole + [
            tirx.floormod(tirx.floordiv((row, column)[axis], value), count)
            for axis, value, count in self.runs
        ]


def shuffle_of(load: TensorLoad, axes: Sequence[Var]) -> Shuffle | None:
    """How a matrix is shuffled, of which an element at a row and a column is loaded, in the largest
    tiles.

    None where neighbours of a row lie together, or where the order is not one of bits.
    """
    offset, analyzer = offset_of(load.source, load.indices), Analyzer()
    none: dict[Var, Expr] = {axis: tirx.const(0, "int32") for axis in axes}
    start = substitute(offset, none)
    found: dict[int, tuple[int, int]] = {}
    for axis, value in product(range(len(axes)), (1 << bit for bit in range(_MOST_BITS))):
        there = substitute(offset, {**none, axes[axis]: tirx.const(value, "int32")})
        distance = constant(analyzer.simplify(there - start))
        if distance is not None:
            found.setdefault(distance, (axis, value))
    bits: list[tuple[int, int]] = []
    while len(bits) < _MOST_BITS and 1 << len(bits) in found:
        bits.append(found[1 << len(bits)])
    return _largest(bits)


def _largest(bits: Sequence[tuple[int, int]]) -> Shuffle | None:
    """The order of the largest tiles that some of the lowest bits make, if it is not by rows."""
    for count in range(len(bits), 0, -1):
        if all(_is_whole(bits[:count], axis) for axis in range(2)):
            found = Shuffle(tuple(bits[:count]))
            return None if found.rows == 1 or bits[0] == (1, 1) else found
    return None


def _is_whole(bits: Sequence[tuple[int, int]], axis: int) -> bool:
    """Whether the bits of an axis are all of a number's, from the lowest on."""
    values = sorted(value for which, value in bits if which == axis)
    return values == [1 << bit for bit in range(len(values))]
