"""Where the elements of one operand lie: (row, column) to (lane, register)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from mfmadsl.model.closed_form import ClosedForm, closed_form


class NoClosedFormError(ValueError):
    """The layout is one-to-one, but no sum of digits describes it."""


@dataclass(frozen=True)
class Layout:
    """A one-to-one map of a `rows` x `columns` tile onto `lanes` x `registers`.

    `registers` counts elements held by one lane, in order; several narrow elements share a 32-bit
    register of the machine (`Operand.location` gives those). `slots` holds a (lane, register) for
    every element in row-major order. The language checks that the map is one-to-one and onto
    before it makes a Layout; `Layout` itself trusts it.
    """

    rows: int
    columns: int
    lanes: int
    registers: int
    slots: tuple[tuple[int, int], ...] = field(repr=False)

    def slot(self, row: int, column: int) -> tuple[int, int]:
        """(lane, register) that holds the element."""
        return self.slots[row * self.columns + column]

    def element(self, lane: int, register: int) -> tuple[int, int]:
        """(row, column) of the element in that slot: the inverse of `slot`."""
        return self._elements[lane, register]

    @cached_property
    def _elements(self) -> dict[tuple[int, int], tuple[int, int]]:
        return {slot: divmod(index, self.columns) for index, slot in enumerate(self.slots)}

    def forward(self, row: str, column: str) -> tuple[ClosedForm, ClosedForm]:
        """(lane, register) as expressions in variables named `row` and `column`."""
        box = {row: self.rows, column: self.columns}
        return (
            _required(closed_form(lambda r, c: self.slot(r, c)[0], box)),
            _required(closed_form(lambda r, c: self.slot(r, c)[1], box)),
        )

    def inverse(self, lane: str, register: str) -> tuple[ClosedForm, ClosedForm]:
        """(row, column) as expressions in variables named `lane` and `register`."""
        box = {lane: self.lanes, register: self.registers}
        return (
            _required(closed_form(lambda x, r: self.element(x, r)[0], box)),
            _required(closed_form(lambda x, r: self.element(x, r)[1], box)),
        )


def _required(form: ClosedForm | None) -> ClosedForm:
    if form is None:
        raise NoClosedFormError("the index map is no sum of digits of its variables")
    return form
