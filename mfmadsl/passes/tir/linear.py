"""Integer expressions as sums of terms: what they have in common, and how large they can become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd

import tvm_ffi
from tvm import tirx
from tvm.sym import Analyzer, detect_linear_equation
from tvm.tirx import Expr

from mfmadsl.passes.tir.expression import constant, depends, multiplied_out, total, widened
from mfmadsl.passes.tir.walk import mapped


@dataclass(frozen=True)
class Linear:
    """A sum of terms, each a number of times an expression that is no sum, and a constant."""

    coefficients: Mapping[tvm_ffi.StructuralKey, int]
    constant: int


def linear_in(expression: Expr, variable: tirx.Var) -> tuple[Expr, Expr] | None:
    """(step, rest) of an expression that is step * variable + rest; None of any other.

    In 64 bits a variable of 32 stands in a cast, which TVM does not look through. An index does not
    wrap around, so that a cast of a sum is the sum of its casts.
    """
    wide = tirx.Var(variable.name, "int64")

    def uncast(node: tirx.Cast) -> Expr:
        return wide if node.value.same_as(variable) else node

    if _is_wide(expression) and not _is_wide(variable):
        expression = mapped(widened(expression), (tirx.Cast, uncast))
        variable = wide
    parts = detect_linear_equation(expression, [variable])
    # TVM does not look into what is read of memory.
    if len(parts) != 2 or any(depends(part, variable) for part in parts):
        return None
    return parts[0], parts[1]


def _is_wide(expression: Expr) -> bool:
    return str(expression.ty.dtype) == "int64"


def linear(expression: Expr) -> Linear:
    """The expression, simplified before, as a sum."""
    terms: dict[tvm_ffi.StructuralKey, int] = {}

    def add(node: Expr, times: int) -> int:
        number = constant(node)
        if number is not None:
            return number * times
        if isinstance(node, tirx.Add):
            return add(node.a, times) + add(node.b, times)
        if isinstance(node, tirx.Sub):
            return add(node.a, times) + add(node.b, -times)
        if isinstance(node, tirx.Mul) and (factor := constant(node.b)) is not None:
            return add(node.a, times * factor)
        if isinstance(node, tirx.Cast):
            return add(node.value, times)
        key = tvm_ffi.StructuralKey(node)
        terms[key] = terms.get(key, 0) + times
        return 0

    fixed = add(expression, 1)
    return Linear({key: times for key, times in terms.items() if times}, fixed)


def common_factor(whole: Linear, part: Linear) -> int | None:
    """How often all terms of `part` are in `whole`, if that is the same number for each."""
    of_whole = whole.coefficients
    ratios = {of_whole.get(key, 0) / times for key, times in part.coefficients.items()}
    if len(ratios) != 1:
        return None
    (ratio,) = ratios
    return int(ratio) if ratio > 0 and ratio == int(ratio) else None


def bounded(condition: Expr) -> tuple[Expr, Expr] | None:
    """(expression, bound) of a condition that says expression < bound; None if it says more."""
    if isinstance(condition, tirx.LT):
        return condition.a, condition.b
    if isinstance(condition, tirx.LE):
        return condition.a, condition.b + 1
    if isinstance(condition, tirx.GT):
        return condition.b, condition.a
    if isinstance(condition, tirx.GE):
        return condition.b, condition.a + 1
    return None


def largest(expression: Expr, conditions: Sequence[Expr], analyzer: Analyzer) -> int | None:
    """What an expression is at most where all conditions hold; None if no number is known.

    `analyzer` knows the ranges of the variables.
    """
    least = _largest(expression, conditions, analyzer)
    by_quotients = _largest_of_quotients(expression, conditions, analyzer)
    found = [each for each in (least, by_quotients) if each is not None]
    return min(found) if found else None


def _largest_of_quotients(
    expression: Expr, conditions: Sequence[Expr], analyzer: Analyzer
) -> int | None:
    """The same, of a sum with quotients, where a condition tells of what is divided."""
    if not conditions:
        return None
    if _is_wide(expression):
        expression = widened(expression)
    most, rest = 0, []
    for term in multiplied_out(expression):
        times = _times(term)
        quotient = term.a if isinstance(term, tirx.Mul) and constant(term.b) == times else term
        by = constant(quotient.b) if isinstance(quotient, tirx.FloorDiv) else None
        if not isinstance(quotient, tirx.FloorDiv) or by is None or by <= 0 or times <= 0:
            rest.append(term)
            continue
        divided = _largest(quotient.a, conditions, analyzer)
        if divided is None:
            return None
        most += divided // by * times
    if len(rest) == len(multiplied_out(expression)):
        return None
    others = _largest(total(rest, str(expression.ty.dtype)), conditions, analyzer) if rest else 0
    return None if others is None else most + others


def _largest(expression: Expr, conditions: Sequence[Expr], analyzer: Analyzer) -> int | None:
    least: int | None = None
    if _is_wide(expression):  # a sum in one cast, and one of casts, have nothing in common
        expression = widened(expression)
    known = analyzer.const_int_bound(expression)
    if known.max_value < 1 << 62:
        least = int(known.max_value)
    for index, condition in enumerate(conditions):
        others = [*conditions[:index], *conditions[index + 1 :]]
        for narrow, limit in _bounds(condition, analyzer):
            part = widened(narrow) if _is_wide(expression) else narrow
            times = common_factor(linear(expression), linear(part))
            if times is None:
                continue
            rest = analyzer.simplify(expression - part * times)
            more = _largest(rest, others, analyzer)
            if more is not None:
                found = (limit - 1) * times + more
                least = found if least is None else min(least, found)
    return least


def _bounds(condition: Expr, analyzer: Analyzer) -> list[tuple[Expr, int]]:
    """(expression, limit) of a condition that says expression < limit, in each way to say so.

    `a + b // c < limit` is `a * c + b < limit * c`.
    """
    sides = bounded(condition)
    if sides is None:
        return []
    part, limit = sides[0], constant(sides[1])
    if limit is None:
        part, limit = analyzer.simplify(sides[0] - sides[1]), 0
    found = [(part, limit)]
    terms = multiplied_out(part)
    for index, term in enumerate(terms):
        if isinstance(term, tirx.FloorDiv) and (by := constant(term.b)) is not None and by > 0:
            others = [other * by for other in (*terms[:index], *terms[index + 1 :])]
            found.append((total([*others, term.a], str(part.ty.dtype)), limit * by))
    return found


def without_remainders(expression: Expr, analyzer: Analyzer) -> Expr:
    """The expression without what its quotients round off: `(k * 64 + lane) // 128` is `k // 2` for
    a lane below 64."""

    def simpler(quotient: tirx.FloorDiv) -> Expr:
        by = constant(quotient.b)
        if by is None or by <= 1:
            return quotient
        terms = multiplied_out(quotient.a)
        for factor in sorted({gcd(_times(term), by) for term in terms}, reverse=True):
            rest = total([term for term in terms if _times(term) % factor], str(quotient.ty.dtype))
            bound = analyzer.const_int_bound(rest)
            if bound.min_value >= 0 and bound.max_value < factor and factor > 1:
                whole = total([t for t in terms if not _times(t) % factor], str(quotient.ty.dtype))
                parts = analyzer.simplify(tirx.floordiv(whole, factor))
                return tirx.floordiv(parts, by // factor)
        return quotient

    return mapped(expression, (tirx.FloorDiv, simpler))


def _times(term: Expr) -> int:
    """By which number a term is multiplied."""
    if (number := constant(term)) is not None:
        return number
    factor = constant(term.b) if isinstance(term, tirx.Mul) else None
    return 1 if factor is None else factor


def counts_down(expression: Expr, analyzer: Analyzer) -> bool:
    """Whether something of a sum may be negative, so that only the whole of it is not."""
    if isinstance(expression, tirx.Cast):
        return counts_down(expression.value, analyzer)
    if isinstance(expression, tirx.Add):
        return counts_down(expression.a, analyzer) or counts_down(expression.b, analyzer)
    if isinstance(expression, tirx.Mul) and (factor := constant(expression.b)) is not None:
        return factor < 0 or counts_down(expression.a, analyzer)
    if isinstance(expression, tirx.Sub):
        return True
    return int(analyzer.const_int_bound(expression).min_value) < 0
