"""Evaluating the integer expressions of layouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mfmadsl.language.diagnostic import Diagnostic, LanguageError
from mfmadsl.language.syntax import Binary, Expression, Name, Number

Environment = Mapping[str, int]
Compiled = Callable[[Environment], int]


def compile_expression(expression: Expression) -> Compiled:
    """A function of the values of the names.

    Calling it raises LanguageError where an expression divides by zero or goes below zero: no
    lane and no register is negative, and rounding of negative quotients would be a trap.
    """
    if isinstance(expression, Number):
        value = expression.value
        return lambda _: value
    if isinstance(expression, Name):
        name = expression.text
        return lambda environment: environment[name]
    left, right = compile_expression(expression.left), compile_expression(expression.right)
    return _OPERATIONS[expression.operator](left, right, expression)


def names_in(expression: Expression) -> list[Name]:
    """Every use of a name, left to right."""
    if isinstance(expression, Name):
        return [expression]
    if isinstance(expression, Binary):
        return [*names_in(expression.left), *names_in(expression.right)]
    return []


def _add(left: Compiled, right: Compiled, _: Binary) -> Compiled:
    return lambda e: left(e) + right(e)


def _multiply(left: Compiled, right: Compiled, _: Binary) -> Compiled:
    return lambda e: left(e) * right(e)


def _subtract(left: Compiled, right: Compiled, expression: Binary) -> Compiled:
    def subtract(environment: Environment) -> int:
        difference = left(environment) - right(environment)
        if difference < 0:
            raise _fault(expression, f"is {difference}, and nothing here may be negative")
        return difference

    return subtract


def _divide(left: Compiled, right: Compiled, expression: Binary) -> Compiled:
    def divide(environment: Environment) -> int:
        divisor = right(environment)
        if not divisor:
            raise _fault(expression, "divides by zero")
        return left(environment) // divisor

    return divide


def _modulo(left: Compiled, right: Compiled, expression: Binary) -> Compiled:
    def modulo(environment: Environment) -> int:
        divisor = right(environment)
        if not divisor:
            raise _fault(expression, "divides by zero")
        return left(environment) % divisor

    return modulo


_OPERATIONS: dict[str, Callable[[Compiled, Compiled, Binary], Compiled]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "%": _modulo,
}


def _fault(expression: Binary, what: str) -> LanguageError:
    span = expression.span
    return LanguageError([Diagnostic("arithmetic", f"`{span.text}` {what}", span)])
