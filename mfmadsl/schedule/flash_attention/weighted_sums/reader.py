"""Reading weighted sums off the blocks of a function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import Buffer, BufferStore, Expr, IterVar, PrimFunc, Var

from mfmadsl.passes.tir.expression import among, depends, loads_of
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.flash_attention.axes import axes_of
from mfmadsl.schedule.flash_attention.definition import Definitions, Reduction
from mfmadsl.schedule.flash_attention.described import (
    Axes,
    Axis,
    Result,
    cast_types,
    dtype_of,
    narrow,
    replaced,
)
from mfmadsl.schedule.flash_attention.multiplied import multiplied, without_float32
from mfmadsl.schedule.flash_attention.weighted_sums.described import (
    FirstProduct,
    WeightedSum,
    WeightedSums,
)
from mfmadsl.schedule.product.dataflow import check_element_wise
from mfmadsl.schedule.product.nest import Nest, is_sum, line, nests, same, substitute
from mfmadsl.schedule.product.sum_of_products import uncast

_TYPES = ("float16", "bfloat16")


def is_weighted(function: PrimFunc) -> bool:
    """Whether a function has several sums, and no maximum among them."""
    sums = [nest for nest in nests(function) if is_sum(nest)]
    values = [nest.block.body.value for nest in sums if isinstance(nest.block.body, BufferStore)]
    return len(sums) > 1 and not any(isinstance(value, tirx.Max) for value in values)


def weighted_sums_of(function: PrimFunc) -> WeightedSums:
    """The weighted sums that a function computes.

    Raises ScheduleError, with the block and the reason, for one that computes anything else.
    """
    return _Reader(Definitions(function)).sums()


@dataclass(frozen=True)
class _Second:
    """A sum of weights times values, at the places of its own axes."""

    sum: Reduction
    dtype: str
    weight: Expr
    value: Expr
    loads: tuple[TensorLoad, ...]


@dataclass(frozen=True)
class _First:
    """What a weight reads as `load`: a product of elements of a row and of a key."""

    load: TensorLoad
    nest: Nest
    row: Expr
    key: Expr
    depth: IterVar


class _Reader:
    """Reads the sums of products of a function, and which of them weigh others."""

    def __init__(self, known: Definitions) -> None:
        self._known = known

    def sums(self) -> WeightedSums:
        """The weighted sums; ScheduleError where there are none."""
        if self._known.row_batches is not None:
            raise ScheduleError(
                f"workload: `{self._known.row_batches.buffer.name}` has the batch of each row, and"
                " only an attention with a softmax takes rows of batches one behind the other"
            )
        found: WeightedSums | None = None
        seconds = self._seconds()
        self._check_results(seconds)
        for second in seconds:
            found = self._with(found, second)
        assert found is not None
        return found

    def _seconds(self) -> list[_Second]:
        """The sums that are weighted by what others are."""
        seconds: list[Reduction] = []
        others: list[Reduction] = []
        for nest in self._known.sums():
            sum_of = self._known.reduction(
                tirx.BufferLoad(nest.store.buffer, nest.store.indices), several=True
            )
            inner = uncast(sum_of.term)
            if sum_of.is_maximum or not isinstance(inner, tirx.Mul):
                raise nest.refusal(
                    "is no sum of products, of which weighted sums are made; an attention also has"
                    " a block of the largest score of each row, and subtracts that"
                )
            is_weighted = bool(self._known.reductions(inner))
            (seconds if is_weighted else others).append(sum_of)
        if not seconds:
            raise ScheduleError(
                "workload: is no attention: no sum multiplies exponentials, or another function of"
                " products, with elements of an argument"
            )
        found = [self._second(each) for each in seconds]
        read = [load.source for each in found for load in each.loads]
        for each in others:
            if not any(each.buffer.same_as(buffer) for buffer in read):
                raise each.nest.refusal("is a product that no weights are made of")
        for second in seconds:
            if any(second.buffer.same_as(buffer) for buffer in read):
                raise second.nest.refusal("is a weighted sum that others are made of, too")
        return found

    def _second(self, sum_of: Reduction) -> _Second:
        nest, term = sum_of.nest, uncast(sum_of.term)
        assert isinstance(term, tirx.Mul)
        sides = [each for each in (term.a, term.b) if not self._known.reductions(each)]
        if len(sides) != 1 or not loads_of(sides[0]):
            raise nest.refusal("does not multiply weights with elements of an argument")
        weight = term.b if term.a.same_as(sides[0]) else term.a
        inner, casts = uncast(weight), cast_types(weight)
        if (
            not casts
            or casts[-1] not in _TYPES
            or casts not in ([casts[-1]], ["float32", casts[-1]])
        ):
            names = " and ".join(casts or [dtype_of(inner)])
            raise nest.refusal(
                f"multiplies weights of {names}: cast them, as what they are made of, to float16 or"
                " bfloat16"
            )
        if dtype_of(inner) != "float32" or str(sum_of.buffer.dtype) != "float32":
            raise nest.refusal("has weights or sums that are not of float32")
        value = multiplied(without_float32(sides[0]), casts[-1], nest)
        loads: list[TensorLoad] = []
        for load in self._known.reductions(inner):
            if not any(same(load, each) for each in loads):
                loads.append(load)
        return _Second(sum_of, casts[-1], inner, value, tuple(loads))

    def _over_keys(self, second: _Second) -> _Second:
        """The sum over the longest axis that rows do not depend on, or over the longest."""
        axes = [second.sum.over, *reversed(second.sum.repeats)]
        for over in axes:
            others = tuple(each for each in reversed(axes) if each is not over)
            found = replace(second, sum=replace(second.sum, over=over, repeats=others))
            try:
                for load in found.loads:
                    self._first(load, found)
            except ScheduleError:
                continue
            return found
        return second

    def _first(self, load: TensorLoad, second: _Second) -> _First:
        """A product that weights are made of."""
        product, key = self._known.reduction(load), second.sum.over.var
        term = uncast(product.term_at(load, product.over.var))
        sides = [term.a, term.b] if isinstance(term, tirx.Mul) else []
        found = [without_float32(side) for side in sides]
        of_key = [depends(side, key) for side in found]
        if sorted(of_key) != [False, True]:
            raise product.nest.refusal("is no product of an element of a row with one of a key")
        if str(product.buffer.dtype) != "float32":
            raise product.nest.refusal(f"is in {product.buffer.dtype}, not in float32")
        own = [multiplied(each, second.dtype, product.nest) for each in found]
        row, of = (own[0], own[1]) if of_key[1] else (own[1], own[0])
        return _First(load, product.nest, row, of, product.over)

    def _with(self, found: WeightedSums | None, second: _Second) -> WeightedSums:
        """What is known already, and one more weighted sum."""
        nest = second.sum.nest
        second = self._over_keys(second)
        firsts = [self._first(load, second) for load in second.loads]
        rows, keys = (_together([f.row for f in firsts]), _together([f.key for f in firsts]))
        own = axes_of(second.sum, (rows, keys, second.value), firsts[0].depth, ())
        repeats = tuple(_axis(each) for each in second.sum.repeats)
        for each in firsts:
            if depends(each.row, own.column.var) or depends(each.key, own.column.var):
                raise each.nest.refusal("is another product for each column of what is weighted")
            if depends(each.key, own.row.var):
                raise each.nest.refusal("has other keys for each row")
        if depends(second.weight, own.column.var):
            raise nest.refusal("has other weights for each column: a kernel has the same for all")
        if found is None:
            found = WeightedSums(self._known.function, own, repeats, (), ())
        elif second.dtype != found.dtype:
            raise nest.refusal(f"multiplies {second.dtype}, and another sum {found.dtype}")
        moved = _moved((own, repeats), (found.axes, found.repeats), nest)
        products = list(found.products)
        variables: list[tuple[TensorLoad, Var]] = []
        for each in firsts:
            product = _product(each, moved, len(products))
            known = next((other for other in products if _alike(product, other)), product)
            products += [product] if known is product else []
            variables.append((each.load, known.variable))
        weight = substitute(replaced(second.weight, variables), moved)
        summed = tirx.Var(f"sum_{len(found.sums)}", "float32")
        results = [self._result(each, second, summed, moved) for each in self._results(nest)]
        value = substitute(second.value, moved)
        sum_of = WeightedSum(weight, value, own.column, summed, tuple(results))
        return replace(found, products=tuple(products), sums=(*found.sums, sum_of))

    def _results(self, second: Nest) -> list[Nest]:
        """The results that are made of a weighted sum, or are it."""
        own = []
        for nest in self._known.results():
            if any(second.store.buffer.same_as(each) for each in self._made_of(nest)):
                own.append(nest)
        if not own:
            raise second.refusal("is a weighted sum that no result is made of")
        return own

    def _check_results(self, seconds: Sequence[_Second]) -> None:
        """Refuse a result that no weighted sum is, or is in."""
        sums = [second.sum.buffer for second in seconds]
        for nest in self._known.results():
            made_of = self._made_of(nest)
            if not any(each.same_as(buffer) for each in made_of for buffer in sums):
                raise nest.refusal("is a result of no weighted sum: a kernel has none for it")

    def _made_of(self, nest: Nest) -> list[Buffer]:
        """The sums that a result is, or is made of."""
        if is_sum(nest):
            return [nest.store.buffer]
        check_element_wise(nest)
        value = self._known.written_out(nest.store.value)
        return [load.source for load in self._known.reductions(value)]

    def _result(
        self, nest: Nest, second: _Second, summed: Var, moved: Mapping[Var, Expr]
    ) -> Result:
        """A result, at places of the axes."""
        written = second.sum.nest
        value: Expr = tirx.BufferLoad(nest.store.buffer, list(nest.store.indices))
        if nest is not written:
            check_element_wise(nest)
            value = self._known.written_out(nest.store.value)
        places: dict[Var, Expr] = {}
        for load in self._known.reductions(value):
            if not load.source.same_as(second.sum.buffer):
                raise nest.refusal(f"is made of `{line(load)}`, too: a result is of one sum alone")
            for index, axis in zip(load.indices, written.store.indices, strict=True):
                known = next((to for of, to in places.items() if index.same_as(of)), axis)
                if not isinstance(index, Var) or not known.same_as(axis):
                    raise nest.refusal("reads a weighted sum at other places than its own")
                places[index] = axis
        for each in nest.block.iter_vars:
            if each.iter_type == IterVar.DataPar and not among(each.var, list(places)):
                raise nest.refusal(f"has a result for each `{each.var.name}`, no axis of its sum")
        sums = [(load, summed) for load in self._known.reductions(value)]
        store = BufferStore(nest.store.buffer, replaced(value, sums), list(nest.store.indices))
        return Result(substitute(substitute(store, places), moved), True)


def _moved(
    own: tuple[Axes, tuple[Axis, ...]], to: tuple[Axes, tuple[Axis, ...]], nest: Nest
) -> dict[Var, Expr]:
    """The axes and repeats of one sum in place of those of another one."""
    each, others = ([axes.row, axes.key, *axes.batch, *repeats] for axes, repeats in (own, to))
    counts = [(len(axes.batch), len(repeats)) for axes, repeats in (own, to)]
    pairs = list(zip(each, others, strict=False))
    if counts[0] != counts[1] or not all(same(a.extent, b.extent) for a, b in pairs):
        raise nest.refusal(
            "has other batches, rows or keys than another weighted sum: make two functions of them"
        )
    return {a.var: b.var for a, b in pairs if not a.var.same_as(b.var)}


def _axis(axis: IterVar) -> Axis:
    return Axis(axis.var, narrow(axis.dom.extent))


def _product(first: _First, moved: Mapping[Var, Expr], number: int) -> FirstProduct:
    variable = tirx.Var(f"product_{number}", "float32")
    row, key = (substitute(side, moved) for side in (first.row, first.key))
    return FirstProduct(variable, row, key, _axis(first.depth))


def _alike(one: FirstProduct, other: FirstProduct) -> bool:
    there = {one.depth.var: other.depth.var}
    sides = ((one.row, other.row), (one.key, other.key))
    return same(one.depth.extent, other.depth.extent) and all(
        same(substitute(a, there), b) for a, b in sides
    )


def _together(values: Sequence[Expr]) -> Expr:
    """An expression that depends on what any of these does."""
    return reduce(tirx.Add, [each.astype("float32") for each in values])
