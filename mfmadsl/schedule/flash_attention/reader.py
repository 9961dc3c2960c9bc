"""Reading an attention off the blocks of a function, from its results back to its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.tirx import BufferStore, Expr, IterVar, PrimFunc, Var

from mfmadsl.passes.tir.expression import (
    calls_of,
    depends,
    loads_of,
    name_of,
)
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.flash_attention.axes import axes_of
from mfmadsl.schedule.flash_attention.definition import Definitions, Reduction
from mfmadsl.schedule.flash_attention.described import (
    Attention,
    Axis,
    Result,
    Softmax,
    cast_types,
    dtype_of,
    narrow,
    replaced,
)
from mfmadsl.schedule.flash_attention.multiplied import (
    EXACT,
    multiplied,
    unguarded,
    without_float32,
)
from mfmadsl.schedule.flash_attention.packed import unpacked
from mfmadsl.schedule.product.dataflow import check_element_wise
from mfmadsl.schedule.product.nest import Nest, is_number, is_sum, line, nests, same, substitute
from mfmadsl.schedule.product.sum_of_products import uncast

_BASES = {"exp2": "log(2)", "exp10": "log(10)"}
"""Functions whose powers are exponentials of another base, and what to multiply with for them."""


def is_attention(function: PrimFunc) -> bool:
    """Whether a function has an exponential between two sums of products."""
    sums = [nest for nest in nests(function) if is_sum(nest)]
    products = [nest for nest in sums if _multiplies(nest)]
    largest = [nest for nest in sums if isinstance(_value(nest), tirx.Max)]
    return len(products) == 2 and len(largest) == 1


def attention_of(function: PrimFunc) -> Attention:
    """The attention that a function computes. Raises ScheduleError, with the block and the reason,
    for one that computes anything else."""
    return _Reader(Definitions(function)).attention()


def _value(nest: Nest) -> Expr | None:
    body = nest.block.body
    return body.value if isinstance(body, BufferStore) else None


def _multiplies(nest: Nest) -> bool:
    value = _value(nest)
    return isinstance(value, tirx.Add) and any(
        isinstance(uncast(side), tirx.Mul) for side in (value.a, value.b)
    )


@dataclass(frozen=True)
class _Weights:
    """What the second product multiplies V with: `exponential` of `score`, of which each row has
    the largest at `largest`, rounded to `dtype`; all at places of the second product's axes."""

    second: Reduction
    dtype: str
    exponential: Expr
    score: Expr
    largest: TensorLoad
    normalised: TensorLoad | None


class _Reader:
    """Reads a function from its results back to what they are made of."""

    def __init__(self, known: Definitions) -> None:
        self._known = known

    def attention(self) -> Attention:
        """The attention; ScheduleError where it is none."""
        weights, v = self._second()
        second, key = weights.second, weights.second.over
        product, first = self._first(weights)
        operands = self._operands(first, product, key, weights.score)
        q, k = (multiplied(each, dtype_of(v), first.nest) for each in operands)
        table, rows = self._known.row_batches, list[Expr]()
        batch = tirx.Var("batch", "int32")
        if table is not None:
            q, k, v = (table.named_in(each, batch, rows) for each in (q, k, v))
        axes = axes_of(second, (q, k, v), first.over, rows)
        if depends(weights.score, axes.column.var):
            raise first.nest.refusal("is a score of each column of V: a kernel has one for all")
        names = ("product", "largest", "total", "attended")
        values = Softmax(*(tirx.Var(name, "float32") for name in names))
        self._check_largest(weights)
        total = self._total(weights)
        for each in (first, second, total, self._known.reduction(weights.largest)):
            if str(each.buffer.dtype) != "float32":
                raise each.nest.refusal(f"is in {each.buffer.dtype}, not in float32")
        results = tuple(
            self._result(nest, weights, total, values) for nest in self._known.results()
        )
        if not any(result.of_columns for result in results):
            raise second.nest.refusal("is a product with V that no result is made of")
        score = replaced(weights.score, [(product, values.product)])
        if self._known.reductions(score):
            raise first.nest.refusal("is a score that others are made of, too")
        found = Attention(self._known.function, axes, values, q, k, v, score, results)
        if table is None:
            return found
        stores = [replace(each, store=table.named_in(each.store, batch, rows)) for each in results]
        score = table.named_in(score, batch, rows)
        whole = replace(found, score=score, results=tuple(stores))
        batches = Axis(batch, narrow(table.starts.shape[0] - 1))
        return unpacked(whole, batches, table.starts, rows, first.nest.refusal)

    def _second(self) -> tuple[_Weights, Expr]:
        """The weights and the values of the second product."""
        for nest in self._known.sums():
            if not _multiplies(nest):
                continue
            second = self._known.reduction(tirx.BufferLoad(nest.store.buffer, nest.store.indices))
            product = second.term
            if not isinstance(product, tirx.Mul):
                continue
            for weight, value in ((product.a, product.b), (product.b, product.a)):
                if _exponentials(weight) and self._is_element(value):
                    found = self._weights(second, weight)
                    element = without_float32(unguarded(value, found.score, second.over))
                    return found, multiplied(element, found.dtype, second.nest)
        counts = (
            f"; `{nest.name}` does not count the batches that end before a row"
            for nest in self._known.sums() if str(nest.store.buffer.dtype) == "int32"
        )  # fmt: skip
        hint = next(counts, "") or self._other_weights()
        raise ScheduleError(
            "workload: is no attention: no sum multiplies exponentials with elements of an"
            f" argument{hint}"
        )

    def _other_weights(self) -> str:
        """Which weights there are instead of exponentials, if there are any."""
        for nest in filter(_multiplies, self._known.sums()):
            term = self._known.reduction(
                tirx.BufferLoad(nest.store.buffer, nest.store.indices)
            ).term
            sides = [term.a, term.b] if isinstance(term, tirx.Mul) else []
            for weight in (uncast(each) for each in sides if self._known.reductions(each)):
                called = [name_of(call) for call in calls_of(weight)]
                power = next((name for name in called if name in _BASES), None)
                if power is not None:
                    return f"; `{nest.name}` has `{power}`: write `exp(x * {_BASES[power]})` for it"
                return f"; `{nest.name}` multiplies elements with `{line(weight)}`"
        return ""

    def _weights(self, second: Reduction, weight: Expr) -> _Weights:
        inner, casts = uncast(weight), cast_types(weight)
        dtype = casts[-1] if casts else dtype_of(inner)
        if dtype not in EXACT or casts not in ([dtype], ["float32", dtype]):
            raise second.nest.refusal(
                f"multiplies weights of {' and '.join(casts or [dtype])}, in which no kernel"
                " attends: cast them, as Q, K and V, to a float of 16 or 8 bits"
            )
        if dtype_of(inner) != "float32":
            raise second.nest.refusal(f"rounds weights of {dtype_of(inner)}, not of float32")
        normalised = None
        if isinstance(inner, tirx.Div):
            by = inner.b
            inner = inner.a
            if not isinstance(by, TensorLoad) or self._known.of(by.source) is None:
                raise second.nest.refusal(f"divides its weights by `{line(by)}`, not by their sum")
            normalised = by
        argument: Expr | None = None
        if isinstance(inner, Call) and name_of(inner) == "exp":
            (argument,) = inner.args
        if not isinstance(argument, tirx.Sub) or not isinstance(argument.b, TensorLoad):
            raise second.nest.refusal(
                f"has weights `{line(inner)}`, not the exponential of a score less the largest"
            )
        if self._known.of(argument.b.source) is None:
            raise second.nest.refusal("subtracts an argument from its scores, not the largest")
        return _Weights(second, dtype, inner, argument.a, argument.b, normalised)

    def _first(self, weights: _Weights) -> tuple[TensorLoad, Reduction]:
        """The product that the scores are made of, as they read it."""
        read = self._known.reductions(weights.score)
        if not read or any(not same(load, read[0]) for load in read):
            raise weights.second.nest.refusal(
                "has scores that are made of several sums, or of none"
            )
        return read[0], self._known.reduction(read[0])

    def _operands(
        self, first: Reduction, product: TensorLoad, key: IterVar, score: Expr
    ) -> tuple[Expr, Expr]:
        """The elements of a query and of a key."""
        term = first.term_at(product, first.over.var)
        sides = [term.a, term.b] if isinstance(term, tirx.Mul) else []
        found = [
            without_float32(unguarded(side, score, key)) for side in sides if self._is_element(side)
        ]
        of_key = [depends(side, key.var) for side in found]
        if sorted(of_key) != [False, True] or first.is_maximum:
            raise first.nest.refusal("is no product of queries and keys that arguments have")
        return (found[0], found[1]) if of_key[1] else (found[1], found[0])

    def _is_element(self, value: Expr) -> bool:
        """Whether a value is made of arguments alone."""
        return bool(loads_of(value)) and not self._known.reductions(value)

    def _check_largest(self, weights: _Weights) -> None:
        largest, key = self._known.reduction(weights.largest), weights.second.over
        score = largest.term_at(weights.largest, key.var)
        if not largest.is_maximum or not _over_all(largest, key) or not same(score, weights.score):
            raise largest.nest.refusal(
                "is not the largest of the scores that it is subtracted from"
            )

    def _total(self, weights: _Weights) -> Reduction:
        """The sum of exponentials, the only sum beside the two products."""
        sums = list(self._known.sums())
        found = [
            nest for nest in sums
            if not _multiplies(nest) and isinstance(_value(nest), tirx.Add)
        ]  # fmt: skip
        if len(found) != 1 or len(sums) != 4:
            there = ", ".join(f"`{nest.name}`" for nest in sums)
            hint = "" if found else ": none adds up the exponentials, by which a result is divided"
            raise ScheduleError(
                "workload: attention has two products, a maximum and a sum of exponentials, each"
                f" in one block; there are {there}{hint}"
            )
        store = found[0].store
        total = self._known.reduction(tirx.BufferLoad(store.buffer, list(store.indices)))
        if weights.normalised is not None:
            self._check_total(total, weights, weights.normalised)
        return total

    def _check_total(self, total: Reduction, weights: _Weights, load: TensorLoad) -> None:
        key = weights.second.over
        if not (
            load.source.same_as(total.buffer)
            and _over_all(total, key)
            and same(total.term_at(load, key.var), weights.exponential)
        ):
            raise total.nest.refusal("is not the sum of the exponentials that V is multiplied with")

    def _result(self, nest: Nest, weights: _Weights, total: Reduction, values: Softmax) -> Result:
        """A result, at places of the second product's axes."""
        second = weights.second
        own = tirx.BufferLoad(nest.store.buffer, list(nest.store.indices))
        value = own if nest is second.nest else self._known.written_out(nest.store.value)
        read = self._known.reductions(value)
        if nest is not second.nest:
            check_element_wise(nest)
        places = self._places(nest, read, weights, total)
        store = BufferStore(nest.store.buffer, value, list(nest.store.indices))
        store = substitute(store, places)
        attended: Expr = values.attended
        if weights.normalised is not None:
            zero = tirx.const(0, "float32")
            attended = tirx.Select(values.total > zero, values.attended / values.total, zero)
        of_columns, instead = False, []
        for load in self._known.reductions(store.value):
            if load.source.same_as(second.buffer):
                if not all(map(same, load.indices, second.nest.store.indices)):
                    raise nest.refusal("reads the product with V at other places than its own")
                of_columns = True
                instead.append((load, attended))
            elif load.source.same_as(total.buffer):
                self._check_total(total, weights, load)
                instead.append((load, values.total))
            elif same(load, weights.largest):
                instead.append((load, values.largest))
            else:
                raise nest.refusal(f"is a result made of `{line(load)}`, which the kernel has not")
        value = replaced(store.value, instead)
        return Result(BufferStore(store.buffer, value, list(store.indices)), of_columns)

    def _places(
        self, nest: Nest, read: Sequence[TensorLoad], weights: _Weights, total: Reduction
    ) -> dict[Var, Expr]:
        """The second product's axes in place of those of a result."""
        second = weights.second
        known = {second.buffer: list(second.nest.store.indices)}
        known[weights.largest.source] = list(weights.largest.indices)
        inside = [
            load for load in self._known.reductions(total.term)
            if load.source.same_as(weights.largest.source)
        ]  # fmt: skip
        if inside:
            there = dict(zip(inside[0].indices, weights.largest.indices, strict=True))
            own = total.nest.store.indices
            if all(any(index.same_as(each) for each in there) for index in own):
                known[total.buffer] = [
                    next(to for each, to in there.items() if index.same_as(each)) for index in own
                ]
        places: dict[Var, Expr] = {}
        for load in read:
            for buffer, axes in known.items():
                if not load.source.same_as(buffer):
                    continue
                for index, axis in zip(load.indices, axes, strict=True):
                    if isinstance(index, Var) and not any(index.same_as(v) for v in places):
                        places[index] = axis
        missing = [v for v in nest.variables if not any(v.same_as(each) for each in places)]
        extents = {axis.var: axis.dom.extent for axis in nest.block.iter_vars}
        for variable in missing:
            if not is_number(extents[variable], 1) and nest is not second.nest:
                raise nest.refusal(
                    f"has a result for each `{variable.name}`, which is no axis of it"
                )
            if nest is not second.nest:
                places[variable] = tirx.const(0, str(variable.ty.dtype))
        return places


def _over_all(reduction: Reduction, key: IterVar) -> bool:
    return same(reduction.over.dom.extent, key.dom.extent)


def _exponentials(value: Expr) -> list[Call]:
    return [call for call in calls_of(value) if name_of(call) == "exp"]
