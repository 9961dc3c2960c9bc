"""What is computed of a score before the softmax: its factor, and the keys that it masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import e, inf, log2

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import Expr, Var

from mfmadsl.passes.tir.expression import choice_of, conjuncts_of, constant, depends, loads_of
from mfmadsl.passes.tir.linear import bounded, linear_in
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.flash_attention.described import Attention
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
    """A score, `value` * `factor`, of a `product`; a kernel compares values."""

    value: Expr
    factor: float
    product: Var
    reads: tuple[ScoreRead, ...]

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
    value, factor = _parted(found.score)
    reads: list[ScoreRead] = []
    for load in loads_of(value):
        if not any(same(load, each.load) for each in reads):
            if any(map(loads_of, load.indices)):
                raise ScheduleError(
                    f"workload: a score reads `{line(load)}`, at a place that depends on data"
                )
            of_keys, of_queries = (
                depends(load, axis.var) for axis in (found.axes.key, found.axes.row)
            )
            reads.append(ScoreRead(f"{load.source.name}_{len(reads)}", load, of_keys, of_queries))
    return Score(value, factor, found.values.product, tuple(reads))


def _parted(value: Expr) -> tuple[Expr, float]:
    """(the rest, the positive number that it is multiplied with)."""
    if isinstance(value, tirx.Mul):
        for inner, by in ((value.a, value.b), (value.b, value.a)):
            if isinstance(by, tirx.FloatImm) and float(by.value) > 0:
                rest, factor = _parted(inner)
                return rest, factor * float(by.value)
    if isinstance(value, tirx.Select) and _is_masked(value.false_value):
        rest, factor = _parted(value.true_value)
        return tirx.Select(value.condition, rest, value.false_value), factor
    return value, 1.0


@dataclass(frozen=True)
class Seen:
    """The keys that a query sees: from `first` on, before `end`; None where nothing bounds them."""

    first: Expr | None
    end: Expr | None


def seen_keys(value: Expr, key: Var, row: Var) -> Seen:
    """The bounds of keys that are masked by -inf beyond them, and move with the query's place."""
    first: list[Expr] = []
    end: list[Expr] = []
    for condition in _masks(value):
        bound = _bound(condition, key, row)
        if bound is not None:
            (first if bound[0] else end).append(bound[1])
    return Seen(_reduced(first, tirx.max), _reduced(end, tirx.min))


def unmasked(value: Expr, key: Var, row: Var) -> Expr:
    """The value for queries and keys within these bounds."""
    choice = choice_of(value)
    if choice is None or not _is_masked(choice[2]):
        return value
    condition, chosen, other = choice
    left = [each for each in conjuncts_of(condition) if _bound(each, key, row) is None]
    inner = unmasked(chosen, key, row)
    if not left:
        return inner
    if isinstance(value, tirx.Select):
        return tirx.Select(tirx.all(*left), inner, other)
    return tirx.if_then_else(tirx.all(*left), inner, other)


def _is_masked(value: Expr) -> bool:
    return isinstance(value, tirx.FloatImm) and float(value.value) == -inf


def _masks(value: Expr) -> Iterator[Expr]:
    """The conditions of which each masks all keys by -inf that do not fulfil it."""
    choice = choice_of(value)
    if choice is not None and _is_masked(choice[2]):
        yield from conjuncts_of(choice[0])
        yield from _masks(choice[1])


def _bound(condition: Expr, key: Var, row: Var) -> tuple[bool, Expr] | None:
    """(whether it bounds keys from below, the bound) of a condition that moves with the query."""
    sides = bounded(condition)
    part = None if sides is None else linear_in(sides[0] - sides[1], key)
    if part is None or (step := constant(part[0])) not in (1, -1):
        return None
    moves = linear_in(part[1], row)
    if moves is None or constant(moves[0]) != -step:
        return None
    # key + rest < 0, or rest - key < 0.
    return (False, -part[1]) if step == 1 else (True, part[1] + 1)


def _reduced(values: Sequence[Expr], both: Callable[[Expr, Expr], Expr]) -> Expr | None:
    return reduce(both, values) if values else None
