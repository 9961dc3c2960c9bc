"""Which columns of C the tiles of a wave have, such that a lane stores several together.

An instruction leaves in a lane one column of its tile. If tiles that stand side by side take their
columns in turn, the first tile the first one, the second tile the second, and so on, a lane has
neighbours, one in each of these tiles, and 32 or 16 lanes store whole cache lines. Rows of B lie in
the LDS in that order, so that all else is as it was: only what fetches B and what stores C knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from math import gcd
from types import ModuleType

from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import SBlockRV
from tvm.tirx import Expr

from mfmadsl.schedule.product.memory import Extent, Memory

_WORD = 4
"""Bytes that a lane stores at least, so that the path to memory is full."""


@dataclass(frozen=True)
class Columns:
    """The order of columns where `count` tiles, of `width` columns each, take them in turn."""

    width: int
    count: int

    @property
    def _whole(self) -> int:
        """Columns of the tiles that take turns."""
        return self.width * self.count

    @property
    def in_turn(self) -> bool:
        """Whether it is another order than that of the matrix."""
        return self.count > 1

    def place(self, column: Expr) -> Expr:
        """Where a column of C is in the order of the tiles."""
        if not self.in_turn:
            return column
        first = tirx.floordiv(column, self._whole) * self._whole
        lane = tirx.floormod(tirx.floordiv(column, self.count), self.width)
        return first + tirx.floormod(column, self.count) * self.width + lane

    def column(self, place: Expr) -> Expr:
        """The column of C at a place in the order of the tiles."""
        if not self.in_turn:
            return place
        first = tirx.floordiv(place, self._whole) * self._whole
        turn = tirx.floormod(tirx.floordiv(place, self.width), self.count)
        return first + tirx.floormod(place, self.width) * self.count + turn


def columns_of(
    c: Memory, extent: Extent | None, tiles: int, width: int, line_bytes: int,
    all_of_them: bool = False,
) -> Columns:  # fmt: skip
    """The order for a wave that has so many tiles of `width` columns side by side.

    As many take their columns in turn as it takes to fill cache lines, by words at least, or all of
    them. It is the order of the matrix where neighbours in a row of C do not lie together, where
    what a lane stores together may go past the edge of the matrix, and where there is but one group
    of such tiles.
    """
    if c.axis != "j" or not isinstance(extent, int) or not isinstance(c.run, int):
        return Columns(width, 1)
    wanted = tiles if all_of_them else max(line_bytes // (width * c.size), _WORD // c.size, 1)
    count = gcd(tiles, wanted, extent, c.run)
    # TVM does not see that places of a single group are those of its columns in turn.
    while count > 1 and extent <= width * count:
        count //= 2
    return Columns(width, count)


def lies_across(tile: ModuleType) -> bool:
    """Whether an instruction leaves the columns of a row in lanes side by side, a lane one."""
    bits = range(tile.N.bit_length() - 1)
    return all(tile.c_slot(0, 1 << bit) == (1 << bit, 0) for bit in bits)


def take_in_turn(
    sch: Schedule, product: SBlockRV, of_columns: Sequence[int], columns: Columns
) -> None:
    """Let a product [..., s, i, j, k...], of parts of K if there are axes before, go through
    columns in that order.

    So does what it reads `of_columns`, B[s, j, k], and C, as it has them: who copies them brings
    them back into the order of the matrix.
    """
    axes, lead = len(sch.get(product).iter_vars), len(sch.get(product).writes[0].region)
    for place in of_columns:
        sch.transform_layout(product, ("read", place), lambda s, j, k: (s, columns.place(j), k))
    own = with_column(columns.place, lead, lead - 1)
    sch.transform_layout(product, ("write", 0), own)
    sch.transform_block_layout(product, with_column(columns.place, axes, lead - 1))


def with_column(
    of: Callable[[Expr], Expr], axes: int, column: int
) -> Callable[..., tuple[Expr, ...]]:
    """The index map of so many axes that changes the column, the axis with that number."""

    def at(*place: Expr) -> tuple[Expr, ...]:
        return *place[:column], of(place[column]), *place[column + 1 :]

    kind = Parameter.POSITIONAL_OR_KEYWORD
    names = [Parameter(f"axis_{n}", kind) for n in range(axes)]
    at.__signature__ = Signature(names)  # type: ignore[attr-defined]  # TVM counts them
    return at
