"""Where the elements of one operand lie: (block, row, column) to (lane, register)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property

from mfmadsl.error import ArgumentError, MfmadslError
from mfmadsl.model.bit_matrix import BitMatrix, bit_matrix
from mfmadsl.model.closed_form import ClosedForm, closed_form


class NoClosedFormError(MfmadslError, ValueError):
    """The layout is one-to-one, but no sum of digits describes it."""


@dataclass(frozen=True)
class Layout:
    """A one-to-one map of `blocks` tiles of `rows` x `columns` onto the elements of `lanes`.

    A slot is a lane and the number of one of its elements, in order, called the register; several
    narrow ones share a 32-bit register of the machine (`Operand.location` gives those). `slots`
    holds a (lane, register) for every element in the order block, row, column. The language checks
    that the map is one-to-one and onto before it makes a Layout; `Layout` itself trusts it.
    """

    rows: int
    columns: int
    lanes: int
    elements_per_lane: int
    slots: tuple[tuple[int, int], ...] = field(repr=False)
    blocks: int = 1

    def slot(self, row: int, column: int, block: int = 0) -> tuple[int, int]:
        """(lane, register) that holds the element."""
        return self.slots[(block * self.rows + row) * self.columns + column]

    def element(self, lane: int, register: int) -> tuple[int, int, int]:
        """(block, row, column) of the element in that slot: the inverse of `slot`."""
        return self._elements[lane, register]

    @cached_property
    def _elements(self) -> dict[tuple[int, int], tuple[int, int, int]]:
        area = self.rows * self.columns
        return {
            slot: (index // area, index % area // self.columns, index % self.columns)
            for index, slot in enumerate(self.slots)
        }

    @cached_property
    def matrix(self) -> BitMatrix | None:
        """The map as bits, of an element's number to that of its slot; None if it is not linear."""
        return bit_matrix([lane * self.elements_per_lane + r for lane, r in self.slots])

    def compose(self, other: Layout) -> tuple[int, ...]:
        """For each slot of this layout, in the order lane, register, the number of the slot of
        `other` that holds the same element: the moves that turn one layout into the other.

        Raises ArgumentError if the two are not of the same elements.
        """
        if (self.blocks, self.rows, self.columns) != (other.blocks, other.rows, other.columns):
            raise ArgumentError("the layouts are of other shapes")
        if self.matrix is not None and other.matrix is not None:
            moves = other.matrix @ self.matrix.inverse()
            return tuple(moves.apply(x) for x in range(self.lanes * self.elements_per_lane))
        slots = ((lane, r) for lane in range(self.lanes) for r in range(self.elements_per_lane))
        found = (other.slot(row, column, block) for block, row, column in map(self._at, slots))
        return tuple(lane * other.elements_per_lane + r for lane, r in found)

    def _at(self, slot: tuple[int, int]) -> tuple[int, int, int]:
        return self._elements[slot]

    def restrict(self, rows: int, columns: int) -> dict[tuple[int, int], tuple[int, int]]:
        """The slots of the first `rows` rows and `columns` columns of the first block."""
        return {(r, c): self.slot(r, c) for r in range(rows) for c in range(columns)}

    def packed(self, bits: int, along_rows: bool = False) -> Layout:
        """The layout of the bytes of elements of `bits` bits that are packed along the columns.

        With `along_rows` the elements of a column are packed, as those of B along k. Raises
        ArgumentError where a byte would hold bits of several lanes.
        """
        return _packed(self, bits, along_rows)

    def run_along_row(self) -> int:
        """How many consecutive elements of a row lie in consecutive registers of one lane."""
        return self._run(lambda x: (0, x), self.columns)

    def run_along_column(self) -> int:
        """How many consecutive elements of a column lie in consecutive registers of one lane."""
        return self._run(lambda x: (x, 0), self.rows)

    def _run(self, along: Callable[[int], tuple[int, int]], extent: int) -> int:
        """The longest power of two into which every line can be cut."""
        run = 1
        while extent % (2 * run) == 0 and self._cut(along, 2 * run):
            run *= 2
        return run

    def _cut(self, along: Callable[[int], tuple[int, int]], run: int) -> bool:
        down, right = along(1)
        for block in range(self.blocks):
            for row in range(0, self.rows, run if down else 1):
                for column in range(0, self.columns, run if right else 1):
                    lane, register = self.slot(row, column, block)
                    for x in range(1, run):
                        place = self.slot(row + x * down, column + x * right, block)
                        if place != (lane, register + x):
                            return False
        return True

    def banks(
        self, register: int, address: Callable[[int, int, int], int], count: int
    ) -> tuple[int, ...]:
        """Which of `count` LDS banks each lane touches when it loads the element for `register`.

        `address` gives the byte at which (block, row, column) lies in the LDS; a bank has four.
        """
        places = (self.element(lane, register) for lane in range(self.lanes))
        return tuple(address(*place) // 4 % count for place in places)

    def forward(self, row: str, column: str, block: str = "") -> tuple[ClosedForm, ClosedForm]:
        """(lane, register) as expressions in variables of these names.

        Raises NoClosedFormError where there are none.
        """
        return _forward(self, row, column, block)

    def inverse(self, lane: str, register: str) -> tuple[ClosedForm, ClosedForm, ClosedForm]:
        """(block, row, column) as expressions in variables of these names."""
        return _inverse(self, lane, register)


# The instructions of a family lie alike: each of these is asked for many times.


@cache
def _forward(layout: Layout, row: str, column: str, block: str) -> tuple[ClosedForm, ClosedForm]:
    box = {row: layout.rows, column: layout.columns}
    if layout.blocks > 1:
        box = {block: layout.blocks, **box}

    def slot(*point: int) -> tuple[int, int]:
        *numbers, r, c = point
        return layout.slot(r, c, *numbers)

    lane = closed_form(lambda *point: slot(*point)[0], box)
    return _required(lane), _required(closed_form(lambda *point: slot(*point)[1], box))


@cache
def _inverse(layout: Layout, lane: str, register: str) -> tuple[ClosedForm, ClosedForm, ClosedForm]:
    box = {lane: layout.lanes, register: layout.elements_per_lane}
    block, row, column = (
        closed_form(lambda x, r, i=part: layout.element(x, r)[i], box) for part in (0, 1, 2)
    )
    return _required(block), _required(row), _required(column)


@cache
def _packed(layout: Layout, bits: int, along_rows: bool) -> Layout:
    rows, columns = layout.rows, layout.columns
    extent = (rows if along_rows else columns) * bits // 8
    rows, columns = (extent, columns) if along_rows else (rows, extent)

    def slot(row: int, column: int) -> tuple[int, int]:
        first, offset = divmod(8 * (row if along_rows else column), bits)
        lane, register = layout.slot(*((first, column) if along_rows else (row, first)))
        return lane, (register * bits + offset) // 8

    slots = tuple(slot(row, column) for row in range(rows) for column in range(columns))
    if len(set(slots)) < len(slots):
        raise ArgumentError(f"elements of {bits} bits do not fill bytes")
    return Layout(rows, columns, layout.lanes, layout.elements_per_lane * bits // 8, slots)


def _required(form: ClosedForm | None) -> ClosedForm:
    if form is None:
        raise NoClosedFormError("the index map is no sum of digits of its variables")
    return form
