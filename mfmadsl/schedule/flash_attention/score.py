"""What is computed of a score before the softmax: its factor, and the keys that it masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import e, inf, log2

from tvm import tirx
from tvm.ir import Range, TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import Expr, Var

from mfmadsl.passes.tir.expression import (
    calls_of,
    choice_of,
    conjuncts_of,
    constant,
    depends,
    loads_of,
    name_of,
)
from mfmadsl.passes.tir.linear import bounded, linear_in
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.flash_attention.described import Attention, Axes, Axis, narrow
from mfmadsl.schedule.product.nest import line, same


@dataclass(frozen=True)
class ScoreRead:
    """What scores read of an argument beside the product, for each key, each query, or both."""

    name: str
    load: TensorLoad
    of_keys: bool
    of_queries: bool

    @property
    def dtype(self) -> str:
        """The type of an element."""
        return str(self.load.ty.dtype)


@dataclass(frozen=True)
class Score:
    """A score, `value` * `factor`, of a `product`; a kernel compares values.

    Keys from number `count` on, which may be read of memory, are seen by no query of a batch.
    """

    value: Expr
    factor: float
    product: Var
    reads: tuple[ScoreRead, ...]
    count: Expr | None

    @property
    def exponent(self) -> float:
        """What a value is multiplied with to have exponents of 2 for those of e."""
        return self.factor * log2(e)

    @property
    def is_plain(self) -> bool:
        """Whether a value is the product itself."""
        return bool(self.value.same_as(self.product))


def score_of(found: Attention) -> Score:
    """The score with its last factor taken out of it, also from under masks."""
    axes = found.axes
    value, factor = _parted(found.score)
    counts = [bound.place for bound in _bounds(value, axes) if bound.is_count]
    value = _without(value, axes, lambda bound: bound.is_count)
    reads: list[ScoreRead] = []
    loads, conditional = loads_of(value), _conditional(value)
    inside = [each for load in loads for index in load.indices for each in loads_of(index)]
    for load in loads:
        if not any(same(load, each) for each in (*inside, *(each.load for each in reads))):
            if any(same(load, each) for each in conditional) and not is_there(load, axes):
                raise ScheduleError(
                    f"workload: a score reads `{line(load)}` under a condition, where the array may"
                    " have nothing: read it at a place that there is, and select what it counts for"
                )
            of_keys, of_queries = (depends(load, axis.var) for axis in (axes.key, axes.row))
            if any(map(loads_of, load.indices)) and (of_queries or not of_keys):
                raise ScheduleError(
                    f"workload: a score reads `{line(load)}`, at a place that depends on data"
                )
            reads.append(ScoreRead(f"{load.source.name}_{len(reads)}", load, of_keys, of_queries))
    count = _reduced(counts, tirx.min)
    return Score(value, factor, found.values.product, tuple(reads), count)


def _conditional(value: Expr) -> list[TensorLoad]:
    """What is read under a condition."""
    choices = [call for call in calls_of(value) if name_of(call) == "if_then_else"]
    return [load for call in choices for branch in call.args[1:] for load in loads_of(branch)]


def is_there(load: TensorLoad, axes: Axes, *more: Axis) -> bool:
    """Whether an array surely has an element at all places of the axes."""
    analyzer, every = Analyzer(), (*axes.batch, axes.row, axes.key, *more)
    for axis in every:
        analyzer.bind(axis.var, Range(0, axis.extent.astype(str(axis.var.ty.dtype))))
    return all(
        any(
            index.same_as(axis.var) and analyzer.can_prove_equal(narrow(end), axis.extent)
            for axis in every
        )
        or (analyzer.can_prove(index >= 0) and analyzer.can_prove(index < end))
        for index, end in zip(load.indices, load.source.shape, strict=True)
    )


def _parted(value: Expr) -> tuple[Expr, float]:
    """(the rest, the positive number that it is multiplied with)."""
    if isinstance(value, tirx.Mul):
        for inner, by in ((value.a, value.b), (value.b, value.a)):
            if isinstance(by, tirx.FloatImm) and float(by.value) > 0:
                rest, factor = _parted(inner)
                return rest, factor * float(by.value)
    choice = choice_of(value)
    if choice is not None and _is_masked(choice[2]):
        rest, factor = _parted(choice[1])
        return _chosen(value, choice[0], rest, choice[2]), factor
    return value, 1.0


def _chosen(value: Expr, condition: Expr, chosen: Expr, other: Expr) -> Expr:
    """A choice of the kind that a value is."""
    if isinstance(value, tirx.Select):
        return tirx.Select(condition, chosen, other)
    return tirx.if_then_else(condition, chosen, other)


@dataclass(frozen=True)
class Seen:
    """The keys that a query sees: from `first` on, before `end`; None where nothing bounds them."""

    first: Expr | None
    end: Expr | None


def seen_keys(value: Expr, axes: Axes) -> Seen:
    """The bounds of keys that are masked by -inf beyond them, and move with the query's place."""
    bounds = list(_bounds(value, axes))
    first = [bound.place for bound in bounds if bound.is_first]
    end = [bound.place for bound in bounds if not bound.is_first]
    return Seen(_reduced(first, tirx.max), _reduced(end, tirx.min))


def unmasked(value: Expr, axes: Axes) -> Expr:
    """The value for queries and keys within these bounds."""
    return _without(value, axes, lambda _: True)


def _without(value: Expr, axes: Axes, drops: Callable[[_Bound], bool]) -> Expr:
    """The value without the masks of some bounds."""
    choice = choice_of(value)
    if choice is None or not _is_masked(choice[2]):
        return value
    condition, chosen, other = choice
    bounds = [(each, _bound(each, axes)) for each in conjuncts_of(condition)]
    left = [each for each, bound in bounds if bound is None or not drops(bound)]
    inner = _without(chosen, axes, drops)
    if not left:
        return inner
    return _chosen(value, tirx.all(*left), inner, other)


def masked_where(conditions: Sequence[Expr], value: Expr) -> Expr:
    """A score that is masked by -inf where one of the conditions does not hold."""
    if not conditions:
        return value
    return tirx.Select(tirx.all(*conditions), value, tirx.const(-inf, "float32"))


def conditions_of(value: Expr) -> list[Expr]:
    """What holds where a score is not masked by -inf."""
    choice = choice_of(value)
    if choice is None or not _is_masked(choice[2]):
        return []
    return [*conjuncts_of(choice[0]), *conditions_of(choice[1])]


def _is_masked(value: Expr) -> bool:
    return isinstance(value, tirx.FloatImm) and float(value.value) == -inf


def _bounds(value: Expr, axes: Axes) -> Iterator[_Bound]:
    """The bounds beyond which all keys are masked by -inf."""
    choice = choice_of(value)
    if choice is not None and _is_masked(choice[2]):
        for condition in conjuncts_of(choice[0]):
            bound = _bound(condition, axes)
            if bound is not None:
                yield bound
        yield from _bounds(choice[1], axes)


@dataclass(frozen=True)
class _Bound:
    """The first key that is seen, or the first that is not any more, and whether it moves with the
    query."""

    place: Expr
    is_first: bool
    moves: bool

    @property
    def is_count(self) -> bool:
        """Whether it says how many keys a batch has."""
        return not self.is_first and not self.moves


def _bound(condition: Expr, axes: Axes) -> _Bound | None:
    """What a condition says of keys that moves with the query or is the same for all; else None."""
    sides = bounded(condition)
    part = None if sides is None else linear_in(sides[0] - sides[1], axes.key.var)
    if part is None or (step := constant(part[0])) not in (1, -1):
        return None
    moves = linear_in(part[1], axes.row.var)
    if moves is None or constant(moves[0]) not in (-step, 0):
        return None
    # key + rest < 0, or rest - key < 0.
    is_first = step == -1
    place = part[1] + 1 if is_first else -part[1]
    return _Bound(place, is_first, constant(moves[0]) != 0)


def _reduced(values: Sequence[Expr], both: Callable[[Expr, Expr], Expr]) -> Expr | None:
    return reduce(both, values) if values else None
