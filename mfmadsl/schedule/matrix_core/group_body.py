"""What a lane does for the results of a group of columns: learns of the others, then stores.

A group is compared in the registers of each lane, then across its lanes, by halves; lanes of a pair
exchange its elements. Then each lane stores what is made of its own elements, and the first one
what is made of the group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import Buffer, BufferStore, Expr, Stmt, Var

from mfmadsl.passes.tir.block import in_sequence
from mfmadsl.passes.tir.device import device, other_half
from mfmadsl.passes.tir.expression import bits_of, substitute
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.schedule.product.column_groups import ComparedGroup, GroupOutput, Output, Pair

_NIBBLES = 2  # elements of four bits in a byte


@dataclass(frozen=True)
class RowPart:
    """Some neighbouring `values` of a row, the first at `place`, and the conditions under which
    these are in the matrix."""

    place: Sequence[Expr]
    values: Sequence[Expr]
    conditions: Sequence[Expr]


@dataclass(frozen=True)
class Body(ABC):
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

    @property
    def width(self) -> int:
        """The values of a group."""
        return self.output.width

    @property
    def alike(self) -> int:
        """How many lanes side by side have the same values."""
        return 1

    @cached_property
    def elements(self) -> Buffer:
        """The lane's elements."""
        shape = [len(self.rows), self.count]
        return tirx.decl_buffer(shape, self._dtype, "element", scope="local")

    @property
    def _dtype(self) -> str:
        return self.output.dtype

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
        return [self.elements, *self._known(), *([self.octets] if shares else [])]

    @property
    def statement(self) -> Stmt:
        """All of them. What lanes exchange is exchanged while all of them run."""
        stores = [self._row(n) for n in range(len(self.rows))]
        return in_sequence(
            [
                *self._held(),
                *self._learnt(),
                *(s for first, _ in stores for s in first),
                *(last for _, last in stores),
            ]
        )

    def _held(self) -> Iterator[Stmt]:
        for row, part in enumerate(self.rows):
            for n, value in enumerate(part.values):
                yield BufferStore(self.elements, value, [row, n])

    @abstractmethod
    def _known(self) -> Sequence[Buffer]:
        """The registers in which the lane keeps what it learns of the group."""

    @abstractmethod
    def _learnt(self) -> Iterator[Stmt]:
        """What the lane does to know of the group what it needs."""

    @abstractmethod
    def _of_group(self, result: Output, row: int) -> Expr:
        """The value of a result that the group has one of."""

    @abstractmethod
    def _of_element(self, result: Output, row: int, n: int, number: Expr) -> Expr:
        """The value of a result that each element has, of one of the lane's; the lane has this
        number in its group."""

    def _element(self, row: int, n: int) -> Expr:
        return tirx.BufferLoad(self.elements, [row, n])

    def _row(self, row: int) -> tuple[list[Stmt], Stmt]:
        """(what lanes exchange, the stores) of the results of a row."""
        exchanged: list[Stmt] = []
        stores: list[Stmt] = []
        for each in self.output.outputs:
            before, store = self._stored(each, row)
            exchanged += before
            stores.append(store)
        made = in_sequence(stores)
        if conditions := [*self.rows[row].conditions, *self._alone()]:
            made = tirx.IfThenElse(tirx.all(*conditions), made, None)
        return exchanged, made

    def _alone(self) -> Sequence[Expr]:
        """Under which conditions a lane is the one of those alike that stores."""
        return ()

    def _stored(self, result: Output, row: int) -> tuple[list[Stmt], Stmt]:
        """A result, by each lane or the first one of the group; before it, what lanes exchange."""
        to = self.results[result.buffer]
        *rows, column = self.rows[row].place
        number = tirx.floordiv(tirx.floormod(column, self.width), self.count)
        if result.of_group:
            group = tirx.floordiv(column, self.width)
            value = self._of_group(result, row)
            return [], _if_first(number, BufferStore(to, value, [*rows, group]))
        values = [self._of_element(result, row, n, number) for n in range(self.count)]
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
        both = BufferStore(
            self.octets, known | other_half(known, _NIBBLES * self.alike) << 4, [row]
        )
        store = BufferStore(to, known.astype("uint8"), [*rows, place])
        return [own, both], _if_first(tirx.floormod(number, _NIBBLES), store)

    def _put(
        self, value: Expr, result: Output, place: Sequence[Expr], known: Mapping[Var, Expr]
    ) -> Expr:
        """A value of a result at a place, of what is known."""
        return put(value, dict(known), result.at, place, self.own)


class ComparingBody(Body):
    """A group's elements are compared."""

    @property
    def comparison(self) -> ComparedGroup:
        """How they are."""
        assert isinstance(self.output.knows, ComparedGroup)
        return self.output.knows

    @cached_property
    def groups(self) -> Buffer:
        """What is known of the group of each row."""
        dtype = str(self.comparison.group.ty.dtype)
        return tirx.decl_buffer([len(self.rows)], dtype, "group", scope="local")

    def _known(self) -> Sequence[Buffer]:
        return [self.groups]

    def _learnt(self) -> Iterator[Stmt]:
        """The groups' values: of the lane's elements, then of twice as many lanes each time.

        All rows take each step together: none waits for what another lane has of the one before.
        """
        rows, choice = range(len(self.rows)), self.comparison.choice
        for row in rows:
            known = self.comparison.first
            for n in range(self.count):
                element = {self.comparison.element: self._element(row, n)}
                known = choice(known, substitute(self.comparison.compared, element))
            yield BufferStore(self.groups, known, [row])
        lanes = 1
        while lanes * self.count < self.width:
            lanes *= 2
            for row in rows:
                group = self._group(row)
                other = other_half(group, lanes * self.alike)
                yield BufferStore(self.groups, choice(group, other), [row])

    def _group(self, row: int) -> Expr:
        return tirx.BufferLoad(self.groups, [row])

    def _of_group(self, result: Output, row: int) -> Expr:
        *rows, column = self.rows[row].place
        place = [*rows, tirx.floordiv(column, self.width)]
        known = {self.comparison.group: self._group(row)}
        return self._put(result.values[0], result, place, known)

    def _of_element(self, result: Output, row: int, n: int, number: Expr) -> Expr:
        *rows, column = self.rows[row].place
        known = {
            self.comparison.group: self._group(row),
            self.comparison.element: self._element(row, n),
        }
        return self._put(result.values[0], result, [*rows, column + n], known)


class PairBody(Body):
    """Two elements are known to both."""

    @cached_property
    def others(self) -> Buffer:
        """Of lanes with one element each, the other one's."""
        return tirx.decl_buffer([len(self.rows)], self.output.dtype, "other", scope="local")

    @property
    def _is_shared(self) -> bool:
        """Whether another lane has the other element."""
        return self.count == 1

    def _known(self) -> Sequence[Buffer]:
        return [self.others] if self._is_shared else []

    def _learnt(self) -> Iterator[Stmt]:
        if self._is_shared:
            for row in range(len(self.rows)):
                other = other_half(self._element(row, 0), self.output.width)
                yield BufferStore(self.others, other, [row])

    def _of_group(self, result: Output, row: int) -> Expr:
        other = tirx.BufferLoad(self.others, [row]) if self._is_shared else self._element(row, 1)
        return self._of_both(result, row, 0, (self._element(row, 0), other))

    def _of_element(self, result: Output, row: int, n: int, number: Expr) -> Expr:
        if not self._is_shared:
            return self._of_both(result, row, n, (self._element(row, 0), self._element(row, 1)))
        own, other = self._element(row, 0), tirx.BufferLoad(self.others, [row])
        even, odd = (
            self._of_both(result, row, n, both)
            for n, both in enumerate(((own, other), (other, own)))
        )
        return tirx.Select(is_first(number), even, odd)

    def _of_both(self, result: Output, row: int, n: int, both: tuple[Expr, Expr]) -> Expr:
        """The value of the n-th element, or of the pair itself, of the two elements."""
        assert isinstance(self.output.knows, Pair)
        *rows, column = self.rows[row].place
        known = dict(zip(self.output.knows.elements, both, strict=True))
        pair = tirx.floordiv(column, self.output.width)
        return self._put(result.values[n], result, [*rows, pair], known)


def put(
    value: Expr, known: dict[Var, Expr], at: Sequence[Expr], place: Sequence[Expr],
    own: Mapping[Buffer, Buffer],
) -> Expr:  # fmt: skip
    """A value of what is known and of the axes `at` as indices of a place, which reads `own`
    parameters."""
    for axis, index in zip(at, place, strict=True):
        if isinstance(axis, Var):
            known[axis] = index if index.ty == axis.ty else index.astype(str(axis.ty.dtype))

    def load(found: TensorLoad) -> Expr:
        return tirx.BufferLoad(own.get(found.source, found.source), list(found.indices))

    return mapped(substitute(value, known), (TensorLoad, load))


def _if_first(number: Expr, statement: Stmt) -> Stmt:
    """A statement of the lane of number 0."""
    return tirx.IfThenElse(is_first(number), statement, None)


def is_first(number: Expr) -> Expr:
    """Whether a lane's number is 0."""
    return tirx.EQ(number, tirx.IntImm(str(number.ty.dtype), 0))


def _code(value: Expr) -> Expr:
    """The four bits of an element."""
    assert isinstance(value, tirx.Cast)
    return device("int32", f"soft.bits.{value.ty.dtype}", value.value.astype("float32"))
