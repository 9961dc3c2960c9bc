"""The number formats that matrix cores read, as bits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal as OneOf

from mfmadsl.emulator.instructions.number import NarrowFloat, narrow_floats
from mfmadsl.model import assumed


@dataclass(frozen=True)
class FloatFormat:
    """The bits of a number: a sign, an exponent of this bias, a mantissa.

    `special` says which codes are no numbers: those of IEEE 754, with the exponent all ones; the
    last magnitude (`top`, OCP's e4m3); that of -0 (`minus_zero`, AMD's fnuz); or none. `cut` bits
    of the mantissa are not looked at. With `flushed`, denormal numbers are 0.
    """

    bits: int
    exponent_bits: int
    mantissa_bits: int
    bias: int
    special: OneOf["ieee", "top", "minus_zero", "none"] = "ieee"
    cut: int = 0
    flushed: bool = False


INTEGER = FloatFormat(8, 0, 7, 0, "none")
"""Signed bytes."""

DOUBLE = FloatFormat(64, 11, 52, 1023)

_SINGLE = FloatFormat(32, 8, 23, 127)
_HALF = FloatFormat(16, 5, 10, 15)
_BFLOAT = FloatFormat(16, 8, 7, 127)
_FORMATS = {
    "f64": DOUBLE,
    "f32": _SINGLE,
    "xf32": replace(_SINGLE, cut=13),
    "f16": _HALF,
    "bf16": _BFLOAT,
    "i8": INTEGER,
}


def format_of(kind: str, arch: str) -> FloatFormat:
    """How a chip's matrix cores read a type. Raises KeyError for one that they do not read."""
    if kind in _FORMATS:
        flushed = assumed(arch).flushes_halves and kind in ("f16", "bf16")
        return replace(_FORMATS[kind], flushed=flushed)
    return _narrow(narrow_floats(arch)[kind])


def _narrow(number: NarrowFloat) -> FloatFormat:
    shape = (number.bits, number.exponent_bits, number.mantissa_bits, number.bias)
    if number.infinity:
        return FloatFormat(*shape, "ieee")
    return FloatFormat(
        *shape, "minus_zero" if number.unsigned_zero else "top" if number.nan else "none"
    )
