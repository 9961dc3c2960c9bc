"""Bits of registers as signed numbers, and as exact numbers and back."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction

FORMATS = {"f16": (5, 10), "f32": (8, 23), "f64": (11, 52), "bf16": (8, 7)}


def signed(x: int, bits: int = 32) -> int:
    x %= 2**bits
    return x - 2**bits if bits and x >> (bits - 1) else x


def number(bits: int, kind: str) -> float:
    """The float that bits stand for; exact, as f64 holds all of these."""
    if kind == "bf16":
        bits, kind = bits << 16, "f32"
    code, integer = {"f16": ("<e", "<H"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}[kind]
    return float(struct.unpack(code, struct.pack(integer, bits))[0])


def nan(kind: str) -> int:
    exponent, mantissa = FORMATS[kind]
    return ((1 << exponent) - 1) << mantissa | 1 << (mantissa - 1)


def infinity(kind: str, negative: bool) -> int:
    exponent, mantissa = FORMATS[kind]
    return int(negative) << (exponent + mantissa) | ((1 << exponent) - 1) << mantissa


def rounded(value: Fraction | float, kind: str, negative_zero: bool = False) -> int:
    """The bits of the nearest float, ties to even."""
    if isinstance(value, float):
        if math.isnan(value):
            return nan(kind)
        if math.isinf(value):
            return infinity(kind, value < 0)
        negative_zero = math.copysign(1, value) < 0
        value = Fraction(value)
    exponent_bits, mantissa_bits = FORMATS[kind]
    sign = int(value < 0 or (value == 0 and negative_zero)) << (exponent_bits + mantissa_bits)
    magnitude = abs(value)
    if magnitude == 0:
        return sign
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    exponent = max(exponent, 1 - bias)
    steps = round(magnitude / Fraction(2) ** (exponent - mantissa_bits))  # ties to even
    code = steps + ((exponent + bias - 1) << mantissa_bits)
    if exponent == 1 - bias and steps < 1 << mantissa_bits:
        code = steps
    if code >= infinity(kind, negative=False):
        return infinity(kind, value < 0)
    return sign | code


def arithmetic(
    kind: str, exact: Callable[..., Fraction], special: Callable[..., float]
) -> Callable[..., int]:
    """A float instruction from its exact value, and from floats where those are not finite."""

    def compute(*sources: int) -> int:
        values = [number(s, kind) for s in sources]
        if all(math.isfinite(v) for v in values):
            result = exact(*(Fraction(v) for v in values))
            if result:
                return rounded(result, kind)
        try:
            return rounded(special(*values), kind)
        except (OverflowError, ZeroDivisionError, ValueError):
            return nan(kind)

    return compute


def is_nan(bits: int, kind: str) -> bool:
    return math.isnan(number(bits, kind))
