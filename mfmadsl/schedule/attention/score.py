"""What is computed of a score before the softmax: its factor, and the keys that it masks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf, log2, e

from tvm import tirx
from tvm.tirx import Expr, Var

from mfmadsl.passes.tir.expression import choice_of, conjuncts_of, constant, depends, substitute
from mfmadsl.passes.tir.linear import bounded, linear_in
from mfmadsl.schedule.attention.definition import LOWEST


@dataclass(frozen=True)
class Score:
    """A score, `value` * `factor`; a kernel compares values, and multiplies once."""

    value: Expr
    factor: float

    @property
    def exponent(self) -> float:
        """What a value is multiplied with to have exponents of 2 for those of e."""
        return self.factor * log2(e)

    @property
    def lowest(self) -> float:
        """A value below all that are not masked, whose exponent is finite."""
        return LOWEST / max(1.0, 2 * self.exponent)


def score_of(value: Expr) -> Score:
    """The score with its last factor taken out of it, also from under masks."""
    if isinstance(value, tirx.Mul):
        for inner, factor in ((value.a, value.b), (value.b, value.a)):
            if isinstance(factor, tirx.FloatImm) and float(factor.value) > 0:
                found = score_of(inner)
                return Score(found.value, found.factor * float(factor.value))
    if isinstance(value, tirx.Select):
        for chosen, masked in ((value.true_value, value.false_value),
                               (value.false_value, value.true_value)):  # fmt: skip
            if isinstance(masked, tirx.FloatImm):
                found = score_of(chosen)
                number = _divided(float(masked.value), found.factor)
                other = tirx.const(number, "float32")
                sides = (found.value, other)
                sides = sides if chosen.same_as(value.true_value) else sides[::-1]
                return Score(tirx.Select(value.condition, *sides), found.factor)
    return Score(value, 1.0)


def _divided(number: float, by: float) -> float:
    """A masked score in units of the factor; what is finite stays so."""
    return number if number == -inf else max(number / by, LOWEST)


@dataclass(frozen=True)
class Seen:
    """The keys that a query sees: from `first` on, before `end`; None where nothing bounds them."""

    first: Expr | None
    end: Expr | None


def seen_keys(value: Expr, key: Var, row: Var) -> Seen:
    """The bounds of keys that are masked by -inf beyond them, and move with the query's place."""
    first: list[Expr] = []
    end: list[Expr] = []
    for condition in _conditions(value):
        sides = bounded(condition)
        if sides is None:
            continue
        part = linear_in(sides[0] - sides[1], key)
        if part is None or (step := constant(part[0])) not in (1, -1):
            continue
        rest = part[1]
        grows = linear_in(rest, row)
        if grows is None or constant(grows[0]) != -step:
            continue
        if step == 1:  # key + rest < 0
            end.append(-rest)
        else:  # -key + rest < 0
            first.append(rest + 1)
    return Seen(_reduced(first, tirx.max), _reduced(end, tirx.min))


def _conditions(value: Expr) -> Iterator[Expr]:
    """The conditions of which each masks all keys by -inf that do not fulfil it."""
    choice = choice_of(value)
    if choice is not None:
        condition, chosen, other = choice
        if isinstance(other, tirx.FloatImm) and float(other.value) == -inf:
            yield from conjuncts_of(condition)
            yield from _conditions(chosen)


def _reduced(values: list[Expr], both) -> Expr | None:  # type: ignore[no-untyped-def]
    found: Expr | None = None
    for value in values:
        found = value if found is None else both(found, value)
    return found


def placed(value: Expr, places: Mapping[Var, Expr]) -> Expr:
    """An expression at places of the axes."""
    return substitute(value, places)


__all__ = ["Score", "Seen", "depends", "placed", "score_of", "seen_keys"]
