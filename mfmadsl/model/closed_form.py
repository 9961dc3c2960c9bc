"""Integer functions over a box, recovered from their values as a person would write them.

A layout is given as a map from (row, column) to (lane, register); its inverse is never written
but derived. Every such function here is a sum of *digits*: `x // divisor % modulus * scale` of
one variable each. `closed_form` finds that sum from the table of values, for powers of two and
for any other radix alike, and says so where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import getitem


@dataclass(frozen=True)
class Digit:
    """`variable // divisor % modulus * scale`, of a variable that runs below `extent`."""

    variable: str
    extent: int
    divisor: int
    modulus: int
    scale: int

    def __str__(self) -> str:
        text = self.variable
        if self.divisor > 1:
            text += f" // {self.divisor}"
        if self.divisor * self.modulus < self.extent:
            text += f" % {self.modulus}"
        if abs(self.scale) > 1:
            text += f" * {abs(self.scale)}"
        return text

    def value(self, x: int) -> int:
        """The number for these values of the variables."""
        return x // self.divisor % self.modulus * self.scale


@dataclass(frozen=True)
class ClosedForm:
    """`constant` plus a sum of digits, largest scale first."""

    constant: int
    digits: tuple[Digit, ...]

    def __str__(self) -> str:
        text = str(self.constant) if self.constant or not self.digits else ""
        for digit in self.digits:
            sign = "-" if digit.scale < 0 else "+"
            text += f" {sign} {digit}" if text else (f"-({digit})" if sign == "-" else str(digit))
        return text

    def value(self, **variables: int) -> int:
        """The number for these values of the variables."""
        return self.constant + sum(d.value(variables[d.variable]) for d in self.digits)


def closed_form(function: Callable[..., int], extents: Mapping[str, int]) -> ClosedForm | None:
    """The sum of digits equal to `function` on all of the box, or None if it is no such sum.

    `function` takes one positional integer per entry of `extents`, in that order.
    """
    names = list(extents)
    constant = function(*(0 for _ in names))
    digits: list[Digit] = []
    parts: list[list[int]] = []  # what the digits of each variable come to, at each of its values
    for position, name in enumerate(names):
        axis = [0] * len(names)
        values = []
        for x in range(extents[name]):
            axis[position] = x
            values.append(function(*axis) - constant)
        found = _digits(name, values)
        if found is None:
            return None
        digits += found
        parts.append([sum(d.value(x) for d in found) for x in range(extents[name])])
    for point in product(*(range(extents[name]) for name in names)):
        if constant + sum(map(getitem, parts, point)) != function(*point):
            return None  # the variables interact: not a sum of functions of one variable each
    return ClosedForm(constant, tuple(sorted(digits, key=lambda d: -abs(d.scale))))


def _digits(name: str, values: Sequence[int]) -> list[Digit] | None:
    extent, divisor = len(values), 1
    digits = []
    while divisor < extent:
        scale, rest = values[divisor], extent // divisor
        modulus = max(
            (
                m
                for m in range(2, rest + 1)
                if rest % m == 0 and all(values[q * divisor] == q * scale for q in range(m))
            ),
            default=None,
        )
        if modulus is None:
            return None
        if scale:
            digits.append(Digit(name, extent, divisor, modulus, scale))
        divisor *= modulus
    return digits
