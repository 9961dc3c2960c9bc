"""The arithmetic of a micro-kernel without an instruction of its own: a sum and a product."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mfmadsl.language.diagnostic import Diagnostic
from mfmadsl.language.expression import names_in
from mfmadsl.language.syntax import Binary, Expression, FormulaField, Name, Number
from mfmadsl.nearest import did_you_mean

WANTED = "c + a * b"
_OPERANDS = ("a", "b", "c")
_Polynomial = Counter[tuple[str, ...]]
"""The factor of each product of operands, which are in the order of their letters."""


def check_expression(field: FormulaField) -> Iterator[Diagnostic]:
    """A mistake where it is anything but C + A * B, in any order."""
    expression = field.expression
    unknown = [name for name in names_in(expression) if name.text not in _OPERANDS]
    for name in unknown:
        message = f"`{name.text}` is no operand"
        hint = did_you_mean(name.text, _OPERANDS)
        yield Diagnostic("unknown-name", message, name.span, hint)
    if unknown or _is_sum(expression):
        return
    computed = _polynomial(expression)
    does = "divides" if computed is None else f"computes {_spoken(computed)}"
    message = f"the expression {does}, where a step is {WANTED}"
    yield Diagnostic("expression", message, expression.span, f"write `{WANTED}`")


def _is_sum(expression: Expression) -> bool:
    if not isinstance(expression, Binary) or expression.operator != "+":
        return False
    sides = expression.left, expression.right
    return any(_is(x, "c") and _is_product(y) for x, y in (sides, sides[::-1]))


def _is_product(expression: Expression) -> bool:
    if not isinstance(expression, Binary) or expression.operator != "*":
        return False
    sides = expression.left, expression.right
    return any(_is(x, "a") and _is(y, "b") for x, y in (sides, sides[::-1]))


def _is(expression: Expression, name: str) -> bool:
    return isinstance(expression, Name) and expression.text == name


def _polynomial(expression: Expression) -> _Polynomial | None:
    """What it computes; None where it divides."""
    if isinstance(expression, Number):
        return Counter({(): expression.value})
    if isinstance(expression, Name):
        return Counter({(expression.text,): 1})
    left, right = _polynomial(expression.left), _polynomial(expression.right)
    if left is None or right is None or expression.operator in "/%":
        return None
    found: _Polynomial = Counter()
    if expression.operator == "*":
        for of_left, x in left.items():
            for of_right, y in right.items():
                found[tuple(sorted((*of_left, *of_right)))] += x * y
        return found
    found.update(left)
    found.update({term: y if expression.operator == "+" else -y for term, y in right.items()})
    return found


def _spoken(polynomial: _Polynomial) -> str:
    text = ""
    for term, factor in sorted(polynomial.items()):
        if not factor:
            continue
        size = abs(factor)
        product = " * ".join([*([str(size)] if size > 1 or not term else []), *term])
        sign = "-" if factor < 0 else "+"
        text += f" {sign} {product}" if text else ("-" if sign == "-" else "") + product
    return text or "0"
