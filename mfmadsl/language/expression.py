"""Evaluating the integer expressions of layouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

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


def tabulate(
    expressions: Sequence[Expression],
    constants: Environment,
    axes: Sequence[tuple[str, int]],
) -> list[tuple[int, ...]]:
    """The values of `expressions` at every point of a box, the last axis varying fastest.

    Each axis is the name of a variable and its extent. Raises LanguageError as
    `compile_expression` does.
    """
    variables = "".join(f"for v_{name} in range({extent}) " for name, extent in axes)
    values = "".join(f"{_python(e, constants)}," for e in expressions)
    try:
        # Names are prefixed identifiers and all else is digits and operators, so this is safe;
        # it is thirty times as fast as walking the tree at every point.
        table: list[tuple[int, ...]] = eval(f"[({values}) {variables}]", {"range": range})
    except ZeroDivisionError:
        table = []
    if table and not any(_subtracts(e) for e in expressions):
        return table
    return _tabulate_checked(expressions, constants, axes)


def _tabulate_checked(
    expressions: Sequence[Expression], constants: Environment, axes: Sequence[tuple[str, int]]
) -> list[tuple[int, ...]]:
    compiled = [compile_expression(e) for e in expressions]
    names = [name for name, _ in axes]
    points = product(*(range(extent) for _, extent in axes))
    environments = ({**constants, **dict(zip(names, p, strict=True))} for p in points)
    return [tuple(function(e) for function in compiled) for e in environments]


def _python(expression: Expression, constants: Environment) -> str:
    if isinstance(expression, Number):
        return str(expression.value)
    if isinstance(expression, Name):
        name = expression.text
        return str(constants[name]) if name in constants else f"v_{name}"
    left, right = _python(expression.left, constants), _python(expression.right, constants)
    operator = "//" if expression.operator == "/" else expression.operator
    return f"({left} {operator} {right})"


def _subtracts(expression: Expression) -> bool:
    return isinstance(expression, Binary) and (
        expression.operator == "-" or _subtracts(expression.left) or _subtracts(expression.right)
    )


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
