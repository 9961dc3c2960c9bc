"""How a matrix core adds a group of products to an element of C, as code for the host.

Source: docs/emulator.md, "The bits of a matrix instruction".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from mfmadsl.emulator.instructions.matrix.arithmetic import Sum
from mfmadsl.emulator.instructions.matrix.host_code import F32, F64, I32, I64, TYPES, Vector

_NOTHING = -8192  # below any exponent
_FAR = 128  # shifts of more bits leave nothing of a number, either
_SIGN, _MAGNITUDE, _INFINITE, _TWO = (
    -0x8000_0000,
    0x7FFF_FFFF,
    0x7F80_0000,
    0x4000_0000,
)  # patterns of float32


@dataclass(frozen=True)
class MatrixProduct:
    """A product yet to be made; `exponent` is that of a product of significands, which the factors
    are, but for narrow ones, which are the numbers themselves."""

    left: Vector
    right: Vector
    exponent: Vector | None

    @property
    def value(self) -> Vector:
        """The exact product."""
        return self.left * self.right


def state_of(how: Sum) -> ir.Type:
    """The type in which a sum grows."""
    return F64 if how.kind == "once" else TYPES[how.element]


def start(how: Sum, c: Vector) -> Vector:
    """The accumulator that sums begin with."""
    if how.kind == "pairs":
        return (c.bits() & _INFINITE != 0).choose(c, 0.0)
    return c.to(state_of(how))


def add_group(
    how: Sum,
    total: Vector,
    products: Sequence[MatrixProduct],
    special: bool,
    peaks: Sequence[Vector] = (),
) -> Vector:
    """A sum to which one more group of products is added.

    `peaks` are the largest exponents of its parts (see `parts_of`), where products have none.
    """
    first = products[0]
    if how.kind in ("integers", "once"):
        return first.value + total
    if how.kind == "chain":
        return first.left.multiply_add(first.right, total)
    if how.kind == "exact":
        return _with_one_nan(_exactly(total, [p.value for p in products]))
    if how.kind == "pairs":
        return _with_one_nan(_by_pairs(total, [_flushed(p.value) for p in products]))
    if not special:
        return _aligned(how, total, products, peaks)
    if how.kind == "interleaved":
        total = _unless_ignored(how, total, products)
    return _with_one_nan(_with_specials(how, _aligned(how, total, products), total, products))


def _with_one_nan(values: Vector) -> Vector:
    """All NaNs the same: which of several comes out of a sum, LLVM leaves open."""
    return ((values.bits() & _MAGNITUDE) > _INFINITE).choose(math.nan, values)


# gfx908: the exact sum of C and a group of products, rounded once.


def _exactly(c: Vector, products: Sequence[Vector]) -> Vector:
    """The products are exact in float64."""
    if len(products) == 2:
        high, low = products
    else:
        # Halves: the products are multiples of 2^-48 and below 2^33. Of those cut at 2^-8 the sum
        # is exact, and that of the rests.
        magic = 1.5 * 2.0**44
        cut = [(p + magic) - magic for p in products]
        high, low = _total(cut), _total([p - x for p, x in zip(products, cut, strict=True)])
    wide = c.to(F64)
    plain = _total([*products, wide])
    # Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using
    # rounding to odd" (2008): three numbers rounded once.
    upper, lower = _two_sum(low, wide)
    upper, rest = _two_sum(high, upper)
    once = _rounded_to_odd(upper, _rounded_to_odd(rest, lower))
    finite = (plain.bits() >> 52 & 0x7FF) != 0x7FF
    return finite.choose(once, plain).to(F32)


def _total(numbers: Sequence[Vector]) -> Vector:
    total = numbers[0]
    for number in numbers[1:]:
        total = total + number
    return total


def _two_sum(a: Vector, b: Vector) -> tuple[Vector, Vector]:
    """The rounded sum, and what rounding took from it (Knuth)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def _rounded_to_odd(a: Vector, b: Vector) -> Vector:
    """The sum in float64: if it is not exact, the one of its two neighbours that is odd."""
    total, error = _two_sum(a, b)
    bits = total.bits()
    outward = (error < 0.0) == (total < 0.0)
    odd = outward.choose(bits + 1, bits - 1)
    inexact_and_even = (error != 0.0) & ((bits & 1) == 0)
    return inexact_and_even.choose(odd, bits).floats()


# gfx90a: float32 operations, denormal results flushed.


def _by_pairs(c: Vector, products: Sequence[Vector]) -> Vector:
    level = list(products)
    while len(level) > 1:
        level = [_flushed(a + b) for a, b in zip(level[::2], level[1::2], strict=True)]
    return _flushed(c + level[0])


def _flushed(values: Vector) -> Vector:
    """A denormal becomes a zero of its sign."""
    bits = values.bits()
    return (bits & _INFINITE != 0).choose(values, (bits & _SIGN).floats())


# gfx942: products cut at 24 bits below the largest exponent.


def parts_of(how: Sum, products: Sequence[MatrixProduct]) -> list[Sequence[MatrixProduct]]:
    """The products of a group that are cut together."""
    return [products] if how.kind == "aligned" else [products[0::2], products[1::2]]


def _aligned(
    how: Sum, c: Vector, products: Sequence[MatrixProduct], peaks: Sequence[Vector] = ()
) -> Vector:
    cut = parts_of(how, products)
    peaks = peaks or [peak_of(part) for part in cut]
    if how.kind == "aligned":
        total, exponent = _cut_sum(how, cut[0], peaks[0])
    else:
        parts = [_cut_sum(how, part, peak) for part, peak in zip(cut, peaks, strict=True)]
        exponent = parts[0][1].maximum(parts[1][1])
        shifted = [_shifted(part, exponent - own) for part, own in parts]
        total = shifted[0] + shifted[1]

    biased = c.bits() >> 23 & 0xFF
    of_c = biased.maximum(1) - 127
    largest = exponent.maximum(of_c)
    # In units of 2^-32 and 2^-24 of the largest exponent, rounded down: float64 holds 53 bits.
    distance = (largest - exponent).minimum(_FAR)
    from_products = (total.to(F64) * _power(distance * -1 + 8)).floor()
    from_c = (c.to(F64) * _power(largest * -1 + 24)).floor()
    if how.kind == "interleaved":
        from_c = (of_c > largest - 26).choose(from_c, 0.0)
    return _rounded(from_c.multiply_add(c.of(from_c.like(256.0)), from_products), largest - 32)


def _shifted(values: Vector, count: Vector) -> Vector:
    """Integers shifted to the right, rounded down; by all of their bits or more: 0 or -1."""
    return values.shift_signed(count.minimum(values.element.width - 1))


def _unless_ignored(how: Sum, c: Vector, products: Sequence[MatrixProduct]) -> Vector:
    """C, or 0 where it is infinite or NaN and the products are large: it counts as below 1."""
    exponent = peak_of(products)
    special = (c.bits() & _INFINITE) == _INFINITE
    return (special & (exponent > 24)).choose(0.0, c)


def peak_of(products: Sequence[MatrixProduct]) -> Vector:
    """The largest exponent of products."""
    exponents = [p.exponent for p in products if p.exponent is not None]
    largest = exponents[0]
    for exponent in exponents[1:]:
        largest = largest.maximum(exponent)
    return largest


def _cut_sum(how: Sum, products: Sequence[MatrixProduct], largest: Vector) -> tuple[Vector, Vector]:
    """The sum in units of 2^-24 of the largest exponent, and that exponent."""
    exponents = [p.exponent for p in products if p.exponent is not None]
    terms = []
    if how.narrow:
        # Products of the numbers themselves, which float32 holds; 2^(24 - largest) times.
        unit = ((largest * -1 + (127 + 24)) << 23).floats()
        terms = [(product.value * unit).to(I32) for product in products]
        # Without a product that is not 0, C alone counts.
        return _total(terms), (largest > how.zero_exponent + 15).choose(largest, _NOTHING)
    for product, exponent in zip(products, exponents, strict=True):
        # 2^(24 - shift) as a float32, or 0 if the shift leaves nothing.
        factor = (exponent - largest + (127 + 24)).maximum(0)
        terms.append((product.value * (factor << 23).floats()).to(I32))
    return _total(terms), largest


def _rounded(wide: Vector, exponent: Vector) -> Vector:
    """wide * 2^exponent: floored at 31 bits of fraction, then rounded to float32."""
    bits = wide.bits()
    dropped = 52 - 31
    away = (wide < 0.0).choose(bits + ((1 << dropped) - 1), bits)
    floored = (away & -(1 << dropped)).floats()
    return (floored * _power(exponent)).to(F32)


def _power(exponent: Vector) -> Vector:
    """The power 2^exponent in float64."""
    return ((exponent + 1023).to(I64) << 52).floats()


def _with_specials(how: Sum, found: Vector, c: Vector, products: Sequence[MatrixProduct]) -> Vector:
    """Infinite or NaN where a product or C is."""
    terms = []
    for product in products:
        value = product.value
        if how.overflowing and product.exponent is not None:
            magnitude = value.bits() & 0x7FFF_FFFF
            exponent = product.exponent + (magnitude > _TWO - 1).if_true(1)
            infinite = ((value.bits() & _SIGN) | _INFINITE).floats()
            value = (exponent > 127).choose(infinite, value)
        terms.append(value)
    of_c = ((c.bits() & _INFINITE) == _INFINITE).choose(c, 0.0)
    total = _total([*terms, of_c])  # products of finite significands are below 4
    special = (total.bits() & _INFINITE) == _INFINITE
    return special.choose(total, found)
