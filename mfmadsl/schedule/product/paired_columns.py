"""Results that are made of two neighbouring columns of a product: gated activations, rotations.

    C[i, g] = f(sums[i, g * 2], sums[i, g * 2 + 1])
    C[i, j] = f(sums[i, j // 2 * 2], sums[i, j // 2 * 2 + 1], j)

Blocks between the sums and a result may be written in any way, as long as each element of it is
made of the two sums of one pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm.ir import Range, TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import Buffer, Expr, PrimFunc, Var

from mfmadsl.passes.tir.expression import bits_of, constant
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.schedule.product.column_groups import (
    GroupOutput,
    Output,
    Pair,
    PairValue,
    group_columns,
    is_whole,
    made_beside,
    made_of,
    reads_parameters,
    storing,
    through,
    with_stand_in,
)
from mfmadsl.schedule.product.dataflow import holds
from mfmadsl.schedule.product.nest import Nest, is_number, is_sum, loads, same, substitute

_WIDTH = 2


def paired_output(function: PrimFunc) -> GroupOutput | None:
    """The results of pairs of columns that a function has, None where it has others."""
    if group_columns(function) > 1:  # what is compared stays whole
        return None
    every = storing(function)
    for nest in every:
        if is_sum(nest) and (found := _PairNests(function, every, nest.store.buffer).output()):
            return found
    return None


def pair_value(function: PrimFunc, made: Buffer) -> tuple[Nest, PairValue] | None:
    """(the sum, what is made of each pair of its columns) if the elements of a buffer are."""
    every = storing(function)
    makers = [nest for nest in every if nest.store.buffer.same_as(made)]
    for nest in every:
        if not makers or not is_sum(nest) or nest is makers[0]:
            continue
        between = [each for each in made_of(every, nest.store.buffer) if is_whole(each)]
        if not any(each is makers[0] for each in between):
            continue
        found = _PairNests(function, every, nest.store.buffer).of_pairs(between, makers[0])
        if found is not None:
            return nest, found
    return None


@dataclass(frozen=True)
class _PairNests:
    """The blocks of a function, of which some may read neighbouring columns of `sums`."""

    function: PrimFunc
    every: Sequence[Nest]
    sums: Buffer

    def output(self) -> GroupOutput | None:
        """What they make; None where that is not all made of pairs, or of elements alone."""
        after = made_of(self.every, self.sums)
        if not after or holds(self.function.params, self.sums) or not all(map(is_whole, after)):
            return None
        made = [self.sums, *(nest.store.buffer for nest in after)]
        if not any(_reads_beside(nest, made) for nest in after):
            return None
        columns = constant(self.sums.shape[-1])
        if columns is None or columns % _WIDTH:
            return None
        dtype = str(self.sums.dtype)
        makers = [*after, *made_beside(self.every, self.sums)]
        elements = (Var("even", dtype), Var("odd", dtype))
        values = _PairValues(self.sums, makers, elements, columns // _WIDTH)
        results = [n for n in after if holds(self.function.params, n.store.buffer)]
        outputs = tuple(each for n in results if (each := values.output(n)) is not None)
        if not outputs or len(outputs) < len(results):
            return None
        if not reads_parameters(self.function, (v for each in outputs for v in each.values)):
            return None
        workload, stand_in = with_stand_in(
            self.function, self.sums, after, outputs[0].buffer, _WIDTH
        )
        return GroupOutput(
            self.function, workload, stand_in, _WIDTH, dtype, Pair(elements), outputs
        )

    def of_pairs(self, after: Sequence[Nest], last: Nest) -> PairValue | None:
        """What the last of some blocks makes of each pair, if it makes one element of each."""
        columns = constant(self.sums.shape[-1])
        if columns is None or columns % _WIDTH:
            return None
        dtype = str(self.sums.dtype)
        elements = (Var("even", dtype), Var("odd", dtype))
        makers = [*after, *made_beside(self.every, self.sums)]
        output = _PairValues(self.sums, makers, elements, columns // _WIDTH).output(last)
        if output is None or not output.of_group:
            return None
        (value,) = output.values
        if not reads_parameters(self.function, [value]):
            return None
        return PairValue(elements, output.at, value, str(output.buffer.dtype))


def _reads_beside(nest: Nest, made: Sequence[Buffer]) -> bool:
    """Whether a block reads one of these buffers at another place than that it stores to."""
    own = list(nest.store.indices)
    return any(
        holds(made, load.source) and not same(list(load.indices), own)
        for load in loads(nest.store.value)
        if len(load.indices) == len(own)
    )


@dataclass(frozen=True)
class _PairValues:
    """What blocks compute, as expressions of the two `elements` of one of `count` pairs."""

    sums: Buffer
    makers: Sequence[Nest]
    elements: tuple[Var, Var]
    count: int

    def output(self, nest: Nest) -> Output | None:
        """The result that a block writes; None if an element is made of other sums."""
        store = nest.store
        *rows, column = store.indices
        *lead, columns = store.buffer.shape
        of_group = is_number(columns, self.count)
        if (
            not same(lead, list(self.sums.shape[:-1]))
            or not (of_group or is_number(columns, self.count * _WIDTH))
            or not isinstance(column, Var)
            or bits_of(str(store.buffer.dtype)) < 8
        ):
            return None
        pair = Var("pair", column.ty)
        analyzer = Analyzer()
        for axis in nest.block.iter_vars:
            analyzer.bind(axis.var, axis.dom)
        analyzer.bind(pair, Range(0, self.count))
        whole = through(store.value, self.makers)
        places = [pair] if of_group else [pair * _WIDTH + n for n in range(_WIDTH)]
        values = []
        for place in places:
            value = analyzer.simplify(substitute(whole, {column: place}))
            if not self._is_of_pair(value, rows, pair, analyzer):
                return None
            values.append(self._of_elements(value, pair))
        return Output(store.buffer, (*rows, pair), tuple(values), of_group)

    def _is_of_pair(self, value: Expr, rows: Sequence[Expr], pair: Var, analyzer: Analyzer) -> bool:
        """Whether a value is made of a pair's sums in these rows, and of no others."""
        return all(
            all(map(analyzer.can_prove_equal, load.indices[:-1], rows))
            and _place(load, pair) in range(_WIDTH)
            for load in loads(value)
            if load.source.same_as(self.sums)
        )

    def _of_elements(self, value: Expr, pair: Var) -> Expr:
        """A value with the pair's elements in the place of the sums that it reads."""

        def element(load: TensorLoad) -> Expr:
            place = _place(load, pair) if load.source.same_as(self.sums) else None
            return load if place is None else self.elements[place]

        return mapped(value, (TensorLoad, element))


def _place(load: TensorLoad, pair: Var) -> int | None:
    """Which column of a pair an element is from."""
    return constant(Analyzer().simplify(load.indices[-1] - pair * _WIDTH))
