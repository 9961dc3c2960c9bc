"""What a lane does for the results of a group of columns: compares its elements, then stores.

The group is compared in the registers of each lane, then across its lanes, by halves. Then each
lane stores what is made of its own elements, and the first one what is made of the group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import Buffer, BufferStore, Expr, Stmt, Var

from mfmadsl.passes.tir.block import in_sequence
from mfmadsl.passes.tir.device import device
from mfmadsl.passes.tir.expression import bits_of, substitute
from mfmadsl.schedule.product.group_output import GroupOutput, Output

_NIBBLES = 2  # elements of four bits in a byte


@dataclass(frozen=True)
class Body:
    """The statements of a lane that has some neighbouring `values` of a row, the first at `place`.

    The parameters that expressions read are `own` ones, and results are stored in `results`.
    """

    output: GroupOutput
    own: Mapping[Buffer, Buffer]
    results: Mapping[Buffer, Buffer]
    values: Sequence[Expr]
    place: Sequence[Expr]

    @cached_property
    def elements(self) -> Buffer:
        """The lane's elements."""
        dtype = str(self.output.element.ty.dtype)
        return tirx.decl_buffer([len(self.values)], dtype, "element", scope="local")

    @cached_property
    def value(self) -> Buffer:
        """What is known of the group."""
        dtype = str(self.output.group.ty.dtype)
        return tirx.decl_buffer([1], dtype, "group", scope="local")

    @cached_property
    def byte(self) -> Buffer:
        """The byte that a lane makes of its element and of another's."""
        return tirx.decl_buffer([1], "int32", "byte", scope="local")

    @property
    def registers(self) -> list[Buffer]:
        """What the statements keep in registers."""
        shares_bytes = len(self.values) == 1 and any(
            bits_of(each.buffer.dtype) < 8 for each in self.output.outputs
        )
        return [self.elements, self.value, *([self.byte] if shares_bytes else [])]

    @property
    def statement(self) -> Stmt:
        """All of them."""
        stores = [self._stored(each) for each in self.output.outputs]
        return in_sequence([*self._compared(), *stores])

    def _compared(self) -> Iterator[Stmt]:
        """The group's value: of the lane's elements, then of twice as many lanes each time."""
        choice = self.output.choice
        for n, value in enumerate(self.values):
            yield BufferStore(self.elements, value, [n])
        known = self.output.first
        for n in range(len(self.values)):
            compared = substitute(self.output.compared, {self.output.element: self._element(n)})
            known = choice(known, compared)
        yield BufferStore(self.value, known, [0])
        lanes = 1
        while lanes * len(self.values) < self.output.width:
            lanes *= 2
            yield BufferStore(self.value, choice(self._group, _other_half(self._group, lanes)), [0])

    def _element(self, n: int) -> Expr:
        return tirx.BufferLoad(self.elements, [n])

    @property
    def _group(self) -> Expr:
        return tirx.BufferLoad(self.value, [0])

    def _stored(self, result: Output) -> Stmt:
        """A result, by each lane or the first one of the group."""
        to = self.results[result.buffer]
        *rows, column = self.place
        number = tirx.floordiv(tirx.floormod(column, self.output.width), len(self.values))
        if result.of_group:
            group = tirx.floordiv(column, self.output.width)
            value = self._value(result, (*rows, group), None)
            return _if_first(number, BufferStore(to, value, [*rows, group]))
        values = [
            self._value(result, (*rows, column + n), self._element(n))
            for n in range(len(self.values))
        ]
        if bits_of(result.buffer.dtype) >= 8:
            return in_sequence(
                [BufferStore(to, value, [*rows, column + n]) for n, value in enumerate(values)]
            )
        return self._nibbles(to, [_code(value) for value in values], number)

    def _nibbles(self, to: Buffer, codes: Sequence[Expr], number: Expr) -> Stmt:
        """Bytes of two elements, by each lane or the first one of two."""
        *rows, column = self.place
        byte = tirx.floordiv(column, _NIBBLES)
        if len(codes) > 1:
            pairs = zip(codes[::2], codes[1::2], strict=True)
            return in_sequence(
                [
                    BufferStore(to, (low | high << 4).astype("uint8"), [*rows, byte + n])
                    for n, (low, high) in enumerate(pairs)
                ]
            )
        # While all lanes run: those that do not would give nothing to the others.
        own = BufferStore(self.byte, codes[0], [0])
        known = tirx.BufferLoad(self.byte, [0])
        both = BufferStore(self.byte, known | _other_half(known, _NIBBLES) << 4, [0])
        store = BufferStore(to, known.astype("uint8"), [*rows, byte])
        return in_sequence([own, both, _if_first(tirx.floormod(number, _NIBBLES), store)])

    def _value(self, result: Output, place: Sequence[Expr], element: Expr | None) -> Expr:
        """A result at a place, of an element or of none."""
        known: dict[Var, Expr] = {self.output.group: self._group}
        if element is not None:
            known[self.output.element] = element
        for axis, index in zip(result.at, place, strict=True):
            if isinstance(axis, Var):
                known[axis] = index
        value = substitute(result.value, known)

        def load(found: TensorLoad) -> Expr:
            return tirx.BufferLoad(self.own.get(found.source, found.source), list(found.indices))

        return tvm_ffi.structural_map(value, (TensorLoad, load))


def _if_first(number: Expr, statement: Stmt) -> Stmt:
    """A statement of the lane of number 0."""
    return tirx.IfThenElse(tirx.EQ(number, tirx.const(0, "int32")), statement, None)


def _other_half(value: Expr, lanes: int) -> Expr:
    """The value of the other half of so many lanes, each of which has one value."""
    dtype = str(value.ty.dtype)
    word = value if dtype == "int32" else tirx.reinterpret("int32", value)
    other = device("int32", f"other.half.of.{lanes}", word)
    return other if dtype == "int32" else tirx.reinterpret(dtype, other)


def _code(value: Expr) -> Expr:
    """The four bits of an element."""
    assert isinstance(value, tirx.Cast)
    return device("int32", f"soft.bits.{value.ty.dtype}", value.value)
