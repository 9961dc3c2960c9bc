"""Exponentials and logarithms of floats in native code, in float64.

Rounded to float32 they are the nearest numbers, as NumPy's are: `tests/emulator/native` compares
them.
"""

from __future__ import annotations

import math
from fractions import Fraction

from mfmadsl.emulator.native.number import VectorNumber

_LN2 = Fraction(math.log(2)) + Fraction(2.3190468138462996e-17)  # the rest of ln 2
_EXP_TERMS = 14
_LOG_TERMS = 12


def _horner(x: VectorNumber, coefficients: list[float]) -> VectorNumber:
    """The polynomial whose coefficients are given from the constant one up."""
    found = x.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        found = found.intrinsic("fma", x, x.constant(coefficient))
    return found


def exp2(x: VectorNumber) -> VectorNumber:
    """2^x, of what is in the range of float32; beyond it 0 or infinity."""
    high = (x > 200.0).choose(200.0, x)
    bounded = (high < -200.0).choose(-200.0, high)
    whole = bounded.intrinsic("rint")
    part = bounded.plain("fsub", whole)
    coefficients, term = [], Fraction(1)
    for n in range(_EXP_TERMS):
        coefficients.append(float(term))
        term *= _LN2 / (n + 1)
    power = ((whole.truncated("i64") + 1023) << 52).as_("f64")
    found = _horner(part, coefficients).plain("fmul", power)
    return x.is_nan().choose(x.quieted(), found)


def log2(x: VectorNumber) -> VectorNumber:
    """The logarithm to base 2; of a number below 0 it is no number."""
    bits = x.as_("i64")
    # A significand between the roots of 1/2 and of 2, and the exponent with it.
    shifted = bits - 0x3FE6_A09E_0000_0000
    exponent = shifted >> 52
    significand = (bits - (exponent << 52)).as_("f64")
    below = significand.plain("fsub", 1.0)
    s = below.plain("fdiv", significand.plain("fadd", 1.0))
    coefficients = [float(2 / _LN2 / (2 * n + 1)) for n in range(_LOG_TERMS)]
    series = _horner(s.plain("fmul", s), coefficients).plain("fmul", s)
    found = exponent.to("f64").plain("fadd", series)
    infinity = x.constant(math.inf)
    found = (x == infinity).choose(infinity, found)
    found = (x == 0.0).choose(-math.inf, found)
    found = (x < 0.0).choose(x.constant(-1.0).intrinsic("sqrt"), found)
    return x.is_nan().choose(x.quieted(), found)
