"""What the buffers of a function hold: values without sums written out, and reductions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import Buffer, Expr, IterVar, PrimFunc, Var

from mfmadsl.passes.tir.expression import constant
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.schedule.product.dataflow import (
    check_compact,
    check_element_wise,
    check_written_once,
    holds,
)
from mfmadsl.schedule.product.nest import (
    Nest,
    check_plain,
    is_number,
    is_sum,
    loads,
    nests,
    substitute,
)
from mfmadsl.schedule.product.row_batches import RowBatches, row_batches
from mfmadsl.schedule.product.sum_of_products import is_so_far, uncast

LOWEST = -3.4028234663852886e38
"""The least finite number of float32, from which TVM's maxima start."""


@dataclass(frozen=True)
class Reduction:
    """A sum or a maximum of `term` over one axis, for each place of the others.

    A sum may be over `repeats`, too.
    """

    nest: Nest
    is_maximum: bool
    term: Expr
    over: IterVar
    repeats: tuple[IterVar, ...] = ()

    @property
    def buffer(self) -> Buffer:
        """What holds the result."""
        return self.nest.store.buffer

    def term_at(self, load: TensorLoad, over: Expr) -> Expr:
        """The term for the place that a load reads, and a place of the axis that is reduced."""
        own = dict(zip(_variables(self.nest), load.indices, strict=True))
        return substitute(self.term, {**own, self.over.var: over})


class Definitions:
    """The nests of a function, by what they write.

    Raises ScheduleError for a function of which a buffer is written twice, or of other statements.
    """

    def __init__(self, function: PrimFunc) -> None:
        check_compact(function)
        check_written_once(function)
        self.function = function
        self.nests = nests(function)
        self._of: dict[int, Nest] = {}
        for nest in self.nests:
            check_plain(nest)
            if isinstance(nest.block.body, tirx.BufferStore):
                self._of[nest.store.buffer.__chandle__()] = nest
        self.row_batches = self._row_batches()
        if self.row_batches is not None:  # values read it as they read parameters
            del self._of[self.row_batches.buffer.__chandle__()]

    def of(self, buffer: Buffer) -> Nest | None:
        """The nest that writes a buffer; None of a parameter that is read."""
        return self._of.get(buffer.__chandle__())

    def results(self) -> Iterator[Nest]:
        """The nests that write parameters."""
        for nest in self.nests:
            written = [region.source for region in nest.block.writes]
            if any(holds(self.function.params, each) for each in written):
                yield nest

    def written_out(self, value: Expr) -> Expr:
        """A value of reductions and parameters alone."""

        def load(found: TensorLoad) -> Expr:
            nest = self.of(found.source)
            if nest is None or is_sum(nest):
                return found
            check_element_wise(nest)
            own = dict(zip(_variables(nest), found.indices, strict=True))
            return self.written_out(substitute(nest.store.value, own))

        return mapped(value, (TensorLoad, load))

    def sums(self) -> Iterator[Nest]:
        """The nests that reduce, but for that which counts the batches of rows."""
        for nest in self.nests:
            if is_sum(nest) and self.of(nest.block.writes[0].source) is not None:
                yield nest

    def _row_batches(self) -> RowBatches | None:
        for nest in list(self._of.values()):
            if is_sum(nest) and str(nest.store.buffer.dtype) == "int32":
                found = self.reduction(tirx.BufferLoad(nest.store.buffer, nest.store.indices))
                over = found.over.var, found.over.dom.extent
                (row, *more) = nest.store.indices
                table = None if more else row_batches(found.buffer, row, found.term, over)
                if table is not None:
                    return table
        return None

    def reductions(self, value: Expr) -> list[TensorLoad]:
        """The loads of what is summed up, or is the largest, in a value that is written out."""
        return [load for load in loads(value) if self.of(load.source) is not None]

    def reduction(self, load: TensorLoad, several: bool = False) -> Reduction:
        """What a load of one reads, over the longest of its axes if it may have several.

        Raises ScheduleError for one of another kind.
        """
        nest = self.of(load.source)
        assert nest is not None
        over = [axis for axis in nest.block.iter_vars if axis.iter_type == IterVar.CommReduce]
        *repeats, longest = sorted(over, key=_length)
        if repeats and not several:
            raise nest.refusal("reduces over several axes")
        _variables(nest)
        store, init = nest.store, nest.block.init
        value = store.value
        first = uncast(init.value) if isinstance(init, tirx.BufferStore) else None
        if isinstance(value, tirx.Add | tirx.Max):
            sides = [side for side in (value.a, value.b) if not is_so_far(side, store)]
            is_maximum = isinstance(value, tirx.Max)
            starts = _is_lowest(first) if is_maximum else is_number(first, 0)
            if len(sides) == 1 and starts:
                term = self.written_out(sides[0])
                return Reduction(nest, is_maximum, term, longest, tuple(repeats))
        raise nest.refusal("is neither a sum from zero nor a maximum from the lowest number")


def _length(axis: IterVar) -> float:
    """The extent; what is known at the launch only counts as more than any."""
    extent = constant(axis.dom.extent)
    return inf if extent is None else extent


def _is_lowest(value: Expr | None) -> bool:
    return isinstance(value, tirx.FloatImm) and float(value.value) <= LOWEST


def _variables(nest: Nest) -> list[Var]:
    """The axes at which a nest writes, one for each index of its buffer.

    Raises ScheduleError for one that writes at other places than its axes.
    """
    found: list[Var] = []
    for index in nest.store.indices:
        if not isinstance(index, Var) or any(index.same_as(each) for each in found):
            raise nest.refusal(f"writes `{nest.store.buffer.name}` at other places than its axes")
        found.append(index)
    return found
