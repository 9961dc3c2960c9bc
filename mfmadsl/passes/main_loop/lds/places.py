"""Places in the LDS: swizzles, that keep it free of bank conflicts, and addresses computed once.

A swizzle moves an element to another place of its row, depending on the row, such that the lanes
that go together hit different banks. It is linear over GF(2): `x ^= (x >> right & mask) << left`
for each of its terms. So what is constant in an index is XORed with what the lane makes of it, and
the index is one of few values, each computed ahead of the loop, plus a constant.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import xor
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import tvm_ffi
from tvm import tirx
from tvm.sym import Analyzer
from tvm.tirx import Bind, Buffer, Expr, Var

from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.expression import constant, i32, is_of_two, multiple_of, narrowed, parted


@dataclass(frozen=True)
class Term:
    """`x ^= (x >> right & mask) << left`; the moved bits lie below those that they are made of."""

    right: int
    mask: int
    left: int


Swizzle = tuple[Term, ...]
Place = TypeVar("Place", int, npt.NDArray[np.int64], Expr)


def swizzled(x: Place, swizzle: Swizzle) -> Place:
    """What is XORed to a place, of an integer, an array or an expression."""
    parts = [((x >> term.right) & term.mask) << term.left for term in swizzle]
    return reduce(xor, parts)


def known_bits(expression: Expr, threads: dict[str, int]) -> int | None:
    """The bits that may be set in an index that is not negative; None if it may be anything.

    `threads` says how many there are of each thread index.
    """
    number = constant(expression)
    if number is not None:
        return number if number >= 0 else None
    if isinstance(expression, tirx.Cast):
        return known_bits(expression.value, threads)
    if isinstance(expression, Var):
        count = threads.get(expression.name)
        return None if count is None else (1 << (count - 1).bit_length()) - 1
    if not is_of_two(expression):
        return None
    operator = type(expression).__name__
    a, b = known_bits(expression.a, threads), known_bits(expression.b, threads)
    if a is None or b is None:
        return None
    fixed = constant(expression.b)
    if operator == "Add":
        return a | b if not a & b else _filled(a + b, min(_low(a), _low(b)))
    if operator == "Mul":
        return a * b if fixed and not b & (b - 1) else _filled(a * b, _low(a) + _low(b))
    if operator == "BitwiseAnd":
        return a & b
    if operator in ("BitwiseOr", "BitwiseXor"):
        return a | b
    if fixed is None or fixed < 0:
        return None
    if operator == "RShift":
        return a >> fixed
    if not fixed or fixed & (fixed - 1):
        return None
    if operator in ("FloorDiv", "Div"):
        return a >> fixed.bit_length() - 1
    return a & (fixed - 1) if operator in ("FloorMod", "Mod") else None


def _filled(top: int, low: int) -> int:
    return ((1 << top.bit_length()) - 1) & ~((1 << low) - 1)


def _low(bits: int) -> int:
    return (bits & -bits).bit_length() - 1 if bits else 62


@dataclass
class Places:
    """The swizzle of each buffer, and the addresses that were needed so far.

    `lean` says that registers are scarce: addresses that differ by an XOR share one.
    """

    swizzles: dict[int, Swizzle]
    threads: dict[str, int]
    lean: bool = False
    binds: list[Bind] = field(default_factory=list)
    _found: dict[tuple[int, tvm_ffi.StructuralKey, int], Var] = field(default_factory=dict)

    def of(self, buffer: Buffer) -> Swizzle:
        """The swizzle of a tile."""
        return self.swizzles.get(buffer.__chandle__(), ())

    def index(self, place: Expr, buffer: Buffer) -> Expr:
        """Where an element lies, that would lie at `place` without a swizzle."""
        swizzle = self.of(buffer)
        if not swizzle:
            return place
        place = narrowed(place)  # no LDS has 2^31 elements
        # Swizzles leave what lies above `top` as it is: there sums may carry.
        top = 1 << max((t.mask << t.right).bit_length() for t in swizzle)
        moving, fixed = parted(place)
        bits = known_bits(moving, self.threads)
        if bits is None or fixed < 0 or bits & fixed & (top - 1):
            moving, fixed, bits = place, 0, 0
        above, fixed, bits = fixed & -top, fixed & (top - 1), bits & (top - 1)
        for term in swizzle:
            bits |= term.mask << term.left
        fixed ^= swizzled(fixed, swizzle)
        change = fixed & bits
        # In units that TVM and LLVM see to be aligned: of an XOR they could not tell. What changes
        # is of bits that either move or are swizzled, so it is of whole units, too.
        low = min(_low(multiple_of(moving)), *(t.left for t in swizzle))
        # Made where it is used of another address, or kept for itself.
        apart, change = (change, 0) if self.lean else (0, change)
        key = buffer.__chandle__(), tvm_ffi.StructuralKey(moving), change
        if key not in self._found:
            self._found[key] = Var(f"place_{len(self.binds)}", "int32")
            unit = Analyzer().simplify(tirx.floordiv(moving, i32(1 << low)))
            narrow = [Term(t.right - low, t.mask, t.left - low) for t in swizzle]
            value = unit ^ swizzled(unit, tuple(narrow)) ^ i32(change >> low)
            self.binds.append(Bind(self._found[key], Analyzer().simplify(value)))
        found, rest = self._found[key], above + (fixed & ~bits)
        unit = device.renewed(found) ^ i32(apart >> low) if apart else found
        whole = unit * i32(1 << low)
        return whole + i32(rest) if rest else whole
