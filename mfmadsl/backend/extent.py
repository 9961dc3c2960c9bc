"""Extents that are known only when a kernel is launched, as formulas of the shapes' symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mfmadsl.error import ArgumentError

_OPERATORS: dict[str, tuple[str, Callable[[int, int], int]]] = {
    "add": ("{} + {}", lambda a, b: a + b),
    "sub": ("{} - {}", lambda a, b: a - b),
    "mul": ("{} * {}", lambda a, b: a * b),
    "floordiv": ("{} // {}", lambda a, b: a // b),
    "floormod": ("{} % {}", lambda a, b: a % b),
    "lshift": ("{} << {}", lambda a, b: a << b),
    "rshift": ("{} >> {}", lambda a, b: a >> b),
    "lt": ("int({} < {})", lambda a, b: int(a < b)),
    "gt": ("int({} > {})", lambda a, b: int(a > b)),
    "le": ("int({} <= {})", lambda a, b: int(a <= b)),
    "ge": ("int({} >= {})", lambda a, b: int(a >= b)),
    "and": ("{} and {}", lambda a, b: a and b),
    "or": ("{} or {}", lambda a, b: a or b),
    "min": ("min({}, {})", min),
    "max": ("max({}, {})", max),
}
OPERATORS = frozenset(_OPERATORS)


@dataclass(frozen=True)
class Formula:
    """`operator` of two extents; it prints as Python."""

    operator: str
    left: Extent
    right: Extent

    def __str__(self) -> str:
        text, _ = _OPERATORS[self.operator]
        is_call = text.startswith(("min(", "max("))
        sides = (f"({x})" if isinstance(x, Formula) and not is_call else str(x)
                 for x in (self.left, self.right))  # fmt: skip
        return text.format(*sides)


Extent: TypeAlias = int | str | Formula
"""A number, the name of a symbol, or a formula of them."""


def value_of(extent: Extent, symbols: Mapping[str, int]) -> int:
    """The number, once the symbols are known. Raises ArgumentError where there is none."""
    if isinstance(extent, int):
        return extent
    if isinstance(extent, str):
        return symbols[extent]
    _, apply = _OPERATORS[extent.operator]
    left, right = value_of(extent.left, symbols), value_of(extent.right, symbols)
    try:
        return apply(left, right)
    except (ZeroDivisionError, ValueError) as error:  # of a shift by less than 0
        raise ArgumentError(f"extent {extent} cannot be: {left} and {right} give {error}") from None
