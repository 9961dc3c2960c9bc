"""How a matrix core adds up the products of an element of D, as code for the host.

Source: docs/emulator.md, "The bits of a matrix instruction".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from mfmadsl.emulator.host_code import (
    F32,
    F64,
    I32,
    I64,
    TYPES,
    Vector,
    compile_function,
    load_scalar,
    load_vector,
    loop,
    pointer,
    splat,
    store_vector,
)
from mfmadsl.emulator.matrix.arithmetic import Sum
from mfmadsl.emulator.matrix.numbers import WIDTH, Numbers
from mfmadsl.emulator.wave import Array

_SAFE = 2.0**126
"""Below it no sum overflows, and none of its operands is infinite or NaN."""

_SIGN, _INFINITE, _TWO = -0x8000_0000, 0x7F80_0000, 0x4000_0000  # patterns of float32


@cache
def compile_sum(how: Sum, width: int, special: bool) -> Callable[..., None]:
    """The function that adds up whole matrices, `width` columns of D at a time.

    Its arguments are: the addresses of A and of its exponents, as (waves, blocks, K, M), of B and
    of its exponents, as (waves, blocks, K, N); the address of C, how many elements its waves are
    apart, and the address of the place of each of its rows, (blocks, M) 64-bit integers in
    elements; those three of D; the numbers of waves and blocks, M, N and K, a multiple of the
    group. Without `special` every number is finite, and too small for any sum to overflow.
    """
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * 15), "sum")
    builder = ir.IRBuilder(function.append_basic_block())
    a, a_exponents, b, b_exponents, c, c_wave, c_rows, d, d_wave, d_rows, *extents = function.args
    waves, blocks, m, n, k = extents
    left, right = (pointer(builder, x, TYPES[how.factor]) for x in (a, b))
    left_exponents, right_exponents = (pointer(builder, x, I32) for x in (a_exponents, b_exponents))
    c, d = (pointer(builder, x, TYPES[how.element]) for x in (c, d))
    c_rows, d_rows = (pointer(builder, x, I64) for x in (c_rows, d_rows))
    place = builder.alloca(ir.VectorType(_state(how), width))

    with loop(builder, waves) as wave, loop(builder, blocks) as block, loop(builder, m) as i:
        tile = builder.mul(builder.add(builder.mul(wave, blocks), block), k)
        row = builder.add(builder.mul(block, m), i)
        source, target = (
            builder.add(builder.mul(wave, apart), load_scalar(builder, rows, row))
            for apart, rows in ((c_wave, c_rows), (d_wave, d_rows))
        )
        with loop(builder, n, width) as j:
            total = load_vector(builder, c, builder.add(source, j), width)
            builder.store(_start(how, total).value, place)
            with loop(builder, k, how.group) as first:
                products = []
                for x in range(how.group):
                    step = builder.add(tile, builder.add(first, I64(x)))
                    of_a = builder.add(builder.mul(step, m), i)
                    of_b = builder.add(builder.mul(step, n), j)
                    factors = (
                        splat(builder, load_scalar(builder, left, of_a), width),
                        load_vector(builder, right, of_b, width),
                    )
                    exponent = None
                    if how.splits:
                        of_left = load_scalar(builder, left_exponents, of_a)
                        of_right = load_vector(builder, right_exponents, of_b, width)
                        exponent = splat(builder, of_left, width) + of_right
                    products.append(_Product(*factors, exponent))
                total = Vector(builder, builder.load(place))
                builder.store(_add(how, total, products, special).value, place)
            total = Vector(builder, builder.load(place)).to(TYPES[how.element])
            store_vector(builder, total, d, builder.add(target, j))
    builder.ret_void()
    return compile_function(module, "sum", 15)


@dataclass(frozen=True)
class _Product:
    """A product yet to be made; `exponent` is that of a product of significands."""

    left: Vector
    right: Vector
    exponent: Vector | None

    @property
    def value(self) -> Vector:
        return self.left * self.right


def _state(how: Sum) -> ir.Type:
    """The type in which a sum grows."""
    return F64 if how.kind == "once" else TYPES[how.element]


def _start(how: Sum, c: Vector) -> Vector:
    if how.kind == "pairs":
        return (c.bits() & _INFINITE != 0).choose(c, 0.0)
    return c.to(_state(how))


def _add(how: Sum, total: Vector, products: Sequence[_Product], special: bool) -> Vector:
    """The sum with one group more."""
    first = products[0]
    if how.kind in ("integers", "once"):
        return first.value + total
    if how.kind == "chain":
        return first.left.multiply_add(first.right, total)
    if how.kind == "exact":
        return _exactly(total, [p.value for p in products])
    if how.kind == "pairs":
        return _by_pairs(total, [_flushed(p.value) for p in products])
    if not special:
        return _aligned(how, total, products)
    if how.kind == "interleaved":
        total = _unless_ignored(total, products)
    return _with_specials(how, _aligned(how, total, products), total, products)


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


def _aligned(how: Sum, c: Vector, products: Sequence[_Product]) -> Vector:
    if how.kind == "aligned":
        total, exponent = _cut_sum(products)
    else:
        parts = [_cut_sum(products[parity::2]) for parity in (0, 1)]
        exponent = parts[0][1].maximum(parts[1][1])
        shifted = [(part * _power(own - exponent)).floor() for part, own in parts]
        total = shifted[0] + shifted[1]

    bits = c.bits()
    biased = bits >> 23 & 0xFF
    of_c = biased.maximum(1) - 127
    magnitude = (bits & 0x7F_FFFF) | (biased != 0).if_true(1 << 23)
    significand = (bits < 0).choose(magnitude * -1, magnitude).to(F64)
    largest = exponent.maximum(of_c)
    # In units of 2^-32 of the largest exponent; float64 holds all of these sums exactly.
    from_products = (total * _power(exponent - largest + 8)).floor()
    from_c = (significand * _power(of_c - largest + 1)).floor() * 256.0
    if how.kind == "interleaved":
        from_c = (of_c > largest - 26).choose(from_c, 0.0)
    return _rounded(from_products + from_c, largest - 32)


def _unless_ignored(c: Vector, products: Sequence[_Product]) -> Vector:
    """C, or 0 where it is infinite or NaN and the products are large: it counts as below 1."""
    _, exponent = _cut_sum(products)
    special = (c.bits() & _INFINITE) == _INFINITE
    return (special & (exponent > 24)).choose(0.0, c)


def _cut_sum(products: Sequence[_Product]) -> tuple[Vector, Vector]:
    """The sum in units of 2^-24 of the largest exponent, as float64, and that exponent."""
    exponents = [p.exponent for p in products if p.exponent is not None]
    largest = exponents[0]
    for exponent in exponents[1:]:
        largest = largest.maximum(exponent)
    terms = []
    for product, exponent in zip(products, exponents, strict=True):
        # 2^(24 - shift), or 0 if the shift leaves nothing.
        factor = (exponent - largest + (127 + 24)).maximum(0) << 23
        terms.append((product.value * factor.floats()).to(I32))
    return _total(terms).to(F64), largest


def _power(exponent: Vector) -> Vector:
    """2^exponent in float64, not below 2^-1000."""
    return ((exponent.maximum(-1000) + 1023).to(I64) << 52).floats()


def _rounded(values: Vector, exponent: Vector) -> Vector:
    """values * 2^exponent: floored at 31 bits of fraction, then rounded to float32."""
    bits = values.bits()
    dropped = 52 - 31
    away = (values < 0.0).choose(bits + ((1 << dropped) - 1), bits)
    floored = (away & -(1 << dropped)).floats()
    return (floored * _power(exponent)).to(F32)


def _with_specials(how: Sum, found: Vector, c: Vector, products: Sequence[_Product]) -> Vector:
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


@dataclass(frozen=True)
class Rows:
    """Rows of C or D in an array: `starts` has where each of them starts in the first wave, in
    elements, in the order block, row; waves are `wave` elements apart."""

    elements: Array
    starts: npt.NDArray[np.int64]
    wave: int


def add_products(
    how: Sum, a: Numbers, b: Numbers, c: Rows, d: Rows, extents: tuple[int, int, int, int, int]
) -> None:
    """D = A x B + C, of `extents` waves, blocks, M, N and K; D may lie where C does."""
    n, k = extents[3:]
    special = False
    if how.splits:
        largest = np.abs(c.elements).max(initial=0) + k * a.peak * b.peak
        special = not largest < _SAFE  # or NaN
    add = compile_sum(how, min(n, WIDTH), special)
    add(
        *a.addresses, *b.addresses,
        c.elements.ctypes.data, c.wave, c.starts.ctypes.data,
        d.elements.ctypes.data, d.wave, d.starts.ctypes.data,
        *extents,
    )  # fmt: skip
