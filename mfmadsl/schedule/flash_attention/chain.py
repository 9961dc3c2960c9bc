"""Two products in registers: where the first leaves its sums is where the second takes a factor.

The first product is S[key, query], the second one O[column, query] += V[column, key] x P[key,
query]. A lane keeps its elements of S as those of P. Which key an element of P is, the layout of
the second instruction's B says; so the keys go into the rows of S in the order that makes it so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import lcm

from tvm import tirx
from tvm.tirx import Expr

from mfmadsl.model import Intrinsic, Operand
from mfmadsl.model.closed_form import ClosedForm, closed_form
from mfmadsl.model.pack import Packed, packed
from mfmadsl.schedule.error import ScheduleError

_EXCHANGED = (16, 32)
"""Distances between lanes that exchange values (`other.half.of` twice as many)."""


@dataclass(frozen=True)
class Chain:
    """An instruction that does both products: `first_pack` and `second_pack` of it in a row."""

    intrinsic: Intrinsic
    first_pack: int
    second_pack: int

    @property
    def first(self) -> Packed:
        """The tile of the first product, S[M, N]."""
        return packed(self.intrinsic, self.first_pack)

    @property
    def second(self) -> Packed:
        """The tile of the second product, of which P is B[K, N]."""
        return packed(self.intrinsic, self.second_pack)

    @property
    def period(self) -> int:
        """Keys after which both tiles begin anew."""
        return lcm(self.intrinsic.m, self.second.k)

    @cached_property
    def keys(self) -> tuple[int, ...]:
        """For each row of S in a period, the key that belongs there.

        Raises ScheduleError where a lane's sums are not of the columns that it holds of B.
        """
        sums, factor = self.intrinsic.c.layout, self.second.b.layout
        if self.intrinsic.blocks > 1:
            raise self._refusal("multiplies several blocks")
        found: dict[int, int] = {}
        for lane in range(sums.lanes):
            for n in range(self.period * self.intrinsic.n // sums.lanes):
                tile, register = divmod(n, sums.elements_per_lane)
                step, element = divmod(n, factor.elements_per_lane)
                _, row, column = sums.element(lane, register)
                _, k, of_factor = factor.element(lane, element)
                key = step * self.second.k + k
                own = tile * self.intrinsic.m + row
                if column != of_factor or found.setdefault(own, key) != key:
                    raise self._refusal("holds its sums in other lanes than its factors")
        return tuple(found[row] for row in range(self.period))

    @cached_property
    def key_of_row(self) -> ClosedForm:
        """`keys` in closed form, of `row`."""
        return self._required(closed_form(lambda row: self.keys[row], {"row": self.period}))

    @cached_property
    def row(self) -> ClosedForm:
        """The row of S in a tile, of `lane` and `register`."""
        return self.intrinsic.c.layout.inverse("lane", "register")[1]

    @cached_property
    def query(self) -> ClosedForm:
        """The column of S in a tile, of `lane` alone: a lane has sums of one query."""
        column = self.intrinsic.c.layout.inverse("lane", "register")[2]
        if any(digit.variable != "lane" for digit in column.digits):
            raise self._refusal("gives a lane sums of several columns")
        return column

    @cached_property
    def distances(self) -> tuple[int, ...]:
        """How far the lanes are apart that have sums of the same query: each lane's number, with
        none, some or all of these bits turned."""
        own = [lane for lane in range(self.intrinsic.c.layout.lanes)
               if self.query.value(lane=lane) == self.query.value(lane=0)]  # fmt: skip
        bits = tuple(lane for lane in own if lane and not lane & (lane - 1))
        alike = all(
            self.query.value(lane=lane ^ bit) == self.query.value(lane=lane)
            for lane in range(self.intrinsic.c.layout.lanes) for bit in bits
        )  # fmt: skip
        if len(own) != 1 << len(bits) or not alike or not set(bits) <= set(_EXCHANGED):
            raise self._refusal("spreads a query over lanes that do not exchange values")
        return bits

    def _required(self, form: ClosedForm | None) -> ClosedForm:
        if form is None:
            raise self._refusal("takes keys in an order that no sum of digits describes")
        return form

    def _refusal(self, reason: str) -> ScheduleError:
        return ScheduleError(f"{self.intrinsic.name} {reason}: no attention is made of it")


def at(form: ClosedForm, **variables: Expr) -> Expr:
    """A closed form of expressions."""
    found: Expr = tirx.const(form.constant, "int32")
    for digit in form.digits:
        whole = tirx.floordiv(variables[digit.variable], digit.divisor)
        found = found + tirx.floormod(whole, digit.modulus) * digit.scale
    return found


def slot(operand: Operand, row: Expr, column: Expr) -> tuple[Expr, Expr]:
    """(lane, register) of an element of an operand's tile."""
    lane, register = operand.layout.forward("row", "column")
    return at(lane, row=row, column=column), at(register, row=row, column=column)
