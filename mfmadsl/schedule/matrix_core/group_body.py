"""What a lane does for the results of a group of columns: compares its elements, then stores.

The group is compared in the registers of each lane, then across its lanes, by halves. Then each
lane stores what is made of its own elements, and the first one what is made of the group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import Buffer, BufferStore, Expr, Stmt, Var

from mfmadsl.passes.tir.block import in_sequence
from mfmadsl.passes.tir.device import device
from mfmadsl.passes.tir.expression import bits_of, substitute
from mfmadsl.schedule.product.group_output import GroupOutput, Output

_WORD = 32  # bits that lanes exchange at once
_NIBBLES = 2  # elements of four bits in a byte


@dataclass(frozen=True)
class RowPart:
    """Some neighbouring `values` of a row, the first at `place`, and the conditions under which
    these are in the matrix."""

    place: Sequence[Expr]
    values: Sequence[Expr]
    conditions: Sequence[Expr]


@dataclass(frozen=True)
class Body:
    """The statements of a lane that has as many values of each of some rows.

    The parameters that expressions read are `own` ones, and results are stored in `results`.
    """

    output: GroupOutput
    own: Mapping[Buffer, Buffer]
    results: Mapping[Buffer, Buffer]
    rows: Sequence[RowPart]

    @property
    def count(self) -> int:
        """The values of a row."""
        return len(self.rows[0].values)

    @cached_property
    def elements(self) -> Buffer:
        """The lane's elements."""
        dtype = str(self.output.element.ty.dtype)
        return tirx.decl_buffer([len(self.rows), self.count], dtype, "element", scope="local")

    @cached_property
    def groups(self) -> Buffer:
        """What is known of the group of each row."""
        dtype = str(self.output.group.ty.dtype)
        return tirx.decl_buffer([len(self.rows)], dtype, "group", scope="local")

    @cached_property
    def octets(self) -> Buffer:
        """The byte that a lane makes of its element of a row and of another lane's."""
        return tirx.decl_buffer([len(self.rows)], "int32", "byte", scope="local")

    @property
    def registers(self) -> list[Buffer]:
        """What the statements keep in registers."""
        shares = self.count == 1 and any(
            bits_of(each.buffer.dtype) < 8 for each in self.output.outputs
        )
        return [self.elements, self.groups, *([self.octets] if shares else [])]

    @property
    def statement(self) -> Stmt:
        """All of them. What lanes exchange is exchanged while all of them run."""
        stores = [self._row(n) for n in range(len(self.rows))]
        return in_sequence(
            [
                *self._compared(),
                *(s for first, _ in stores for s in first),
                *(last for _, last in stores),
            ]
        )

    def _compared(self) -> Iterator[Stmt]:
        """The groups' values: of the lane's elements, then of twice as many lanes each time.

        All rows take each step together: none waits for what another lane has of the one before.
        """
        choice, rows = self.output.choice, range(len(self.rows))
        for row in rows:
            for n, value in enumerate(self.rows[row].values):
                yield BufferStore(self.elements, value, [row, n])
        for row in rows:
            known = self.output.first
            for n in range(self.count):
                element = {self.output.element: self._element(row, n)}
                known = choice(known, substitute(self.output.compared, element))
            yield BufferStore(self.groups, known, [row])
        lanes = 1
        while lanes * self.count < self.output.width:
            lanes *= 2
            for row in rows:
                group = self._group(row)
                yield BufferStore(self.groups, choice(group, _other_half(group, lanes)), [row])

    def _element(self, row: int, n: int) -> Expr:
        return tirx.BufferLoad(self.elements, [row, n])

    def _group(self, row: int) -> Expr:
        return tirx.BufferLoad(self.groups, [row])

    def _row(self, row: int) -> tuple[list[Stmt], Stmt]:
        """(what lanes exchange, the stores) of the results of a row."""
        exchanged: list[Stmt] = []
        stores: list[Stmt] = []
        for each in self.output.outputs:
            before, store = self._stored(each, row)
            exchanged += before
            stores.append(store)
        made = in_sequence(stores)
        if conditions := self.rows[row].conditions:
            made = tirx.IfThenElse(tirx.all(*conditions), made, None)
        return exchanged, made

    def _stored(self, result: Output, row: int) -> tuple[list[Stmt], Stmt]:
        """A result, by each lane or the first one of the group; before it, what lanes exchange."""
        to = self.results[result.buffer]
        *rows, column = self.rows[row].place
        number = tirx.floordiv(tirx.floormod(column, self.output.width), self.count)
        if result.of_group:
            group = tirx.floordiv(column, self.output.width)
            value = self._value(result, row, (*rows, group), None)
            return [], _if_first(number, BufferStore(to, value, [*rows, group]))
        values = [
            self._value(result, row, (*rows, column + n), self._element(row, n))
            for n in range(self.count)
        ]
        if bits_of(result.buffer.dtype) >= 8:
            stores = [BufferStore(to, value, [*rows, column + n]) for n, value in enumerate(values)]
            return [], in_sequence(stores)
        return self._nibbles(to, row, [_code(value) for value in values], number)

    def _nibbles(
        self, to: Buffer, row: int, codes: Sequence[Expr], number: Expr
    ) -> tuple[list[Stmt], Stmt]:
        """Bytes of two elements, by each lane or the first one of two."""
        *rows, column = self.rows[row].place
        place = tirx.floordiv(column, _NIBBLES)
        if self.count > 1:
            pairs = zip(codes[::2], codes[1::2], strict=True)
            stores = [
                BufferStore(to, (low | high << 4).astype("uint8"), [*rows, place + n])
                for n, (low, high) in enumerate(pairs)
            ]
            return [], in_sequence(stores)
        known = tirx.BufferLoad(self.octets, [row])
        own = BufferStore(self.octets, codes[0], [row])
        both = BufferStore(self.octets, known | _other_half(known, _NIBBLES) << 4, [row])
        store = BufferStore(to, known.astype("uint8"), [*rows, place])
        return [own, both], _if_first(tirx.floormod(number, _NIBBLES), store)

    def _value(self, result: Output, row: int, place: Sequence[Expr], element: Expr | None) -> Expr:
        """A result at a place, of an element or of none."""
        known: dict[Var, Expr] = {self.output.group: self._group(row)}
        if element is not None:
            known[self.output.element] = element
        for axis, index in zip(result.at, place, strict=True):
            if isinstance(axis, Var):
                known[axis] = index if index.ty == axis.ty else index.astype(str(axis.ty.dtype))
        value = substitute(result.value, known)

        def load(found: TensorLoad) -> Expr:
            return tirx.BufferLoad(self.own.get(found.source, found.source), list(found.indices))

        return tvm_ffi.structural_map(value, (TensorLoad, load))


def _if_first(number: Expr, statement: Stmt) -> Stmt:
    """A statement of the lane of number 0."""
    return tirx.IfThenElse(tirx.EQ(number, tirx.IntImm(str(number.ty.dtype), 0)), statement, None)


def _other_half(value: Expr, lanes: int) -> Expr:
    """The value of the other half of so many lanes, each of which has one value."""
    dtype = str(value.ty.dtype)
    bits = bits_of(dtype)
    own = tirx.reinterpret(f"uint{bits}", value)
    parts = []
    for first in range(0, bits, _WORD):
        word = tirx.reinterpret("int32", (own >> first if first else own).astype("uint32"))
        other = tirx.reinterpret("uint32", device("int32", f"other.half.of.{lanes}", word))
        parts.append(other.astype(f"uint{bits}") << first if first else other.astype(f"uint{bits}"))
    return tirx.reinterpret(dtype, reduce(or_, parts))


def _code(value: Expr) -> Expr:
    """The four bits of an element."""
    assert isinstance(value, tirx.Cast)
    return device("int32", f"soft.bits.{value.ty.dtype}", value.value.astype("float32"))
