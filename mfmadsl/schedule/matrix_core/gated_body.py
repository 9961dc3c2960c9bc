"""What a lane does where groups are compared of what pairs of columns make, as a gate does.

A lane makes a value of each pair that it has; two lanes with a column each both make that of their
pair, and the first of them stores. What is known of a group follows from these values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tvm import tirx
from tvm.tirx import Buffer, BufferStore, Expr, Stmt

from mfmadsl.passes.tir.device import other_half
from mfmadsl.schedule.matrix_core.group_body import (
    Body,
    ComparingBody,
    PairBody,
    RowPart,
    is_first,
    put,
)
from mfmadsl.schedule.product.column_groups import ComparedGroup, GroupOutput, PairValue

_WIDTH = 2  # columns of a pair


@dataclass(frozen=True)
class _Columns:
    """The columns of some rows that a lane has, in registers: `own` ones, and those of the lane
    beside it, of lanes with `one` column of a row each."""

    rows: Sequence[RowPart]
    own: Buffer
    others: Buffer
    one: bool

    @property
    def registers(self) -> list[Buffer]:
        """The registers that hold them."""
        return [self.own, *([self.others] if self.one else [])]

    def held(self) -> Iterator[Stmt]:
        """The statements that fill these."""
        for row, part in enumerate(self.rows):
            for n, value in enumerate(part.values):
                yield BufferStore(self.own, value, [row, n])
        for row in range(len(self.rows) if self.one else 0):
            other = other_half(tirx.BufferLoad(self.own, [row, 0]), _WIDTH)
            yield BufferStore(self.others, other, [row])

    def is_first(self) -> Expr:
        """Whether the lane has the first column of its pair, where two lanes share one."""
        return is_first(tirx.floormod(self.rows[0].place[-1], _WIDTH))

    def pair(self, row: int, n: int) -> tuple[Expr, Expr]:
        """The two columns of the n-th pair of a row."""
        if not self.one:
            even, odd = (tirx.BufferLoad(self.own, [row, _WIDTH * n + m]) for m in range(_WIDTH))
            return even, odd
        own, other = tirx.BufferLoad(self.own, [row, 0]), tirx.BufferLoad(self.others, [row])
        first = self.is_first()
        return tirx.Select(first, own, other), tirx.Select(first, other, own)


@dataclass(frozen=True)
class _GatedBody(ComparingBody):
    """Values that pairs of `columns` make are compared."""

    columns: _Columns

    @property
    def width(self) -> int:
        """The values of a group."""
        return self.output.width // _WIDTH

    @property
    def alike(self) -> int:
        """How many lanes side by side have the same value."""
        return _WIDTH if self.columns.one else 1

    @property
    def _dtype(self) -> str:
        assert self.output.pairs is not None
        return self.output.pairs.dtype

    def _held(self) -> Iterator[Stmt]:
        yield from self.columns.held()
        yield from super()._held()

    def _known(self) -> Sequence[Buffer]:
        return [*self.columns.registers, *super()._known()]

    def _alone(self) -> Sequence[Expr]:
        return [self.columns.is_first()] if self.columns.one else []


def body_of(
    output: GroupOutput, own: Mapping[Buffer, Buffer], results: Mapping[Buffer, Buffer],
    rows: Sequence[RowPart],
) -> Body:  # fmt: skip
    """What a lane does for an output."""
    if not isinstance(output.knows, ComparedGroup):
        return PairBody(output, own, results, rows)
    if output.pairs is None:
        return ComparingBody(output, own, results, rows)
    count = len(rows[0].values)
    held = tirx.decl_buffer([len(rows), count], output.dtype, "column", scope="local")
    others = tirx.decl_buffer([len(rows)], output.dtype, "other", scope="local")
    columns = _Columns(rows, held, others, count == 1)
    made = [_made(output.pairs, columns, n, own) for n in range(len(rows))]
    return _GatedBody(output, own, results, made, columns)


def _made(pairs: PairValue, columns: _Columns, row: int, own: Mapping[Buffer, Buffer]) -> RowPart:
    """The values that the pairs of a row make."""
    part = columns.rows[row]
    *lead, column = part.place
    first = tirx.floordiv(column, _WIDTH)
    values = []
    for n in range(max(len(part.values) // _WIDTH, 1)):
        known = dict(zip(pairs.elements, columns.pair(row, n), strict=True))
        values.append(put(pairs.value, known, pairs.at, [*lead, first + n], own))
    return replace(part, place=[*lead, first], values=values)
