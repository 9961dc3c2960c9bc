"""Vector instructions on floats (CDNA3 ISA, chapter 12: VOP1, VOP2 and VOP3).

Results are the nearest numbers, ties to even. So are those of the functions that a chip
approximates to within one unit in the last place: exp, log, rcp, rsq, sqrt, sin and cos. Denormals
are kept, unless the mode flushes them; some instructions on f32 always do ("denormals are flushed"
in the manuals; Mesa's ACO, `fp_denorm`; LLVM scales numbers around them).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from mfmadsl.emulator.instructions.row import QUARTER_RATE, Row, row
from mfmadsl.emulator.machine.bits import Array, Compute, dtype_of
from mfmadsl.emulator.machine.denormal import flushing
from mfmadsl.emulator.machine.operation import Slots

_SMALL = 2.0**-450


def fused_multiply_add(kind: str) -> Compute:
    """The function a * b + c, rounded once to a type."""
    narrow = fused_through_f64 if kind != "f64" else fused_f64
    return lambda a, b, c: narrow(a, b, c).astype(dtype_of(kind))


def fused_through_f64(a: Array, b: Array, c: Array) -> Array:
    """The product is exact in f64; its sum is rounded to odd, so that rounding again is right."""
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    return _sum_to_odd(product, addend)


def fused_f64(a: Array, b: Array, c: Array) -> Array:
    """Boldo and Melquiond, "Emulation of FMA and correctly rounded sums" (2008), section 4."""
    a, b, c = (np.asarray(v) for v in np.broadcast_arrays(a, b, c))
    high, low = _two_product(a, b)
    inner, inner_low = _two_sum(c, low)
    outer, outer_low = _two_sum(high, inner)
    result = outer + _sum_to_odd(inner_low, outer_low)
    sizes = np.abs(np.stack([a, b, high, c, result]))
    usual = ((sizes > _SMALL) & (sizes < 1 / _SMALL)).all(axis=0)
    for index in np.argwhere(~usual):  # too near to overflow or to denormals for that
        at = tuple(index)
        result[at] = _fused_exactly(float(a[at]), float(b[at]), float(c[at]))
    return result


def _fused_exactly(a: float, b: float, c: float) -> float:
    if not all(map(math.isfinite, (a, b, c))):
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if not exact:
        return a * b + c
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    product = a * b
    (a_high, a_low), (b_high, b_low) = (_split(x) for x in (a, b))
    low = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return product, low


def _split(a: Array) -> tuple[Array, Array]:
    scaled = a * np.float64(2**27 + 1)
    high = scaled - (scaled - a)
    return high, a - high


def _sum_to_odd(a: Array, b: Array) -> Array:
    """a + b rounded to odd: an inexact sum becomes the neighbour whose last bit is 1."""
    total, error = _two_sum(a, b)
    inexact = (error != 0) & np.isfinite(total)
    bits = np.ascontiguousarray(total).view(np.int64)
    toward = np.where((error > 0) == (total > 0), 1, -1)
    odd = np.where(inexact & (bits & 1 == 0), bits + toward, bits)
    return odd.view(np.float64)


def _rounded(kind: str, function: Callable[[Any], Any]) -> Compute:
    """A function of one number, computed in float64 and rounded once."""
    return lambda a: np.asarray(function(a.astype(np.float64))).astype(dtype_of(kind))


def _log2(a: Array) -> Array:
    """Of a number below 0 the NaN of its root: NumPy's has a sign that depends on the processor."""
    return np.where(a < 0, np.sqrt(a), np.log2(a))


def _periodic(kind: str, function: Callable[[Any], Any], beyond: float) -> Compute:
    """sin or cos of a part of a turn; what is out of [-256, 256] gives sin(0) or cos(0)."""

    def compute(a: Array) -> Array:
        inside = function(2 * np.pi * a.astype(np.float64))
        out = np.isfinite(a) & (np.abs(a) > 256)
        return np.where(out, beyond, inside).astype(dtype_of(kind))

    return compute


def _extreme(larger: bool) -> Compute:
    """v_max and v_min: -0 is below 0, and a quiet NaN gives way to a number.

    A signaling NaN does not, in IEEE mode (CDNA3 ISA, V_MAX_F32), which kernels of HSA are in.
    """
    pick, join = (np.fmax, np.bitwise_and) if larger else (np.fmin, np.bitwise_or)

    def compute(a: Array, b: Array) -> Array:
        a, b = np.broadcast_arrays(a, b)
        bits = f"u{a.itemsize}"
        chosen: Array = np.where(a == b, join(a.view(bits), b.view(bits)).view(a.dtype), pick(a, b))
        signals = _is_signaling(a) | _is_signaling(b)
        return np.where(signals, a.dtype.type(np.nan), chosen)

    return compute


def _is_signaling(a: Array) -> Array:
    quiet = {2: 9, 4: 22, 8: 51}[a.itemsize]
    bits = a.view(f"u{a.itemsize}")
    return np.isnan(a) & (bits >> bits.dtype.type(quiet) & bits.dtype.type(1) == 0)


def _fraction(a: Array) -> Array:
    """a minus its floor, which is below 1 even where the difference would round to 1."""
    one_below = np.nextafter(a.dtype.type(1), a.dtype.type(0))
    return np.minimum(a - np.floor(a), one_below)


def _load_exponent(a: Array, b: Array) -> Array:
    return np.ldexp(a, np.clip(b.astype(np.int32), -32768, 32767))


def _mantissa(a: Array) -> Array:
    return np.where(np.isfinite(a), np.frexp(a)[0], a).astype(a.dtype)


def _exponent(dtype: type) -> Compute:
    return lambda a: np.where(np.isfinite(a), np.frexp(a)[1], 0).astype(dtype)


def _median(a: Array, b: Array, c: Array) -> Array:
    """The largest of the others than the largest; the smallest where one is no number."""
    usual: Array = np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))
    if not ((usual == 0) | np.isnan(usual)).any():  # zeros have signs, and NaN is an argument's
        return usual
    top = largest(largest(a, b), c)
    middle = np.where(top == b, largest(a, c), largest(a, b))
    middle = np.where(top == a, largest(b, c), middle)
    nan = np.isnan(a) | np.isnan(b) | np.isnan(c)
    return np.where(nan, smallest(smallest(a, b), c), middle)


def _fix_division(quotient: Array, denominator: Array, numerator: Array) -> Array:
    """v_div_fixup: special cases of numerator / denominator; elsewhere the quotient so far."""
    special = ~np.isfinite(denominator) | ~np.isfinite(numerator)
    special |= (denominator == 0) | (numerator == 0)
    # No number came out of the steps: the quotient is too large for one.
    size = np.where(np.isnan(quotient), quotient.dtype.type(np.inf), np.abs(quotient))
    signed = np.copysign(size, np.sign(numerator) * np.sign(denominator))
    return np.where(special, numerator / denominator, signed).astype(quotient.dtype)


@cache
def _two_over_pi() -> int:
    """The first 1201 bits of 2/pi, which is what the chip holds: by Machin's formula for pi."""
    bits = 1201 + 64

    def arctangent(of: int) -> int:  # of 1/of, in units of 2^-(2 * bits)
        power = total = (1 << 2 * bits) // of
        step = 1
        while power:
            power //= -of * of
            step += 2
            total += power // step
        return total

    pi = 4 * (4 * arctangent(5) - arctangent(239))
    return (2 << 3 * bits) // pi >> bits - 1201


def _piece_of_two_over_pi(a: Array, segment: Array) -> Array:
    """53 bits of 2/pi: those that count for a number of this size (CDNA3 ISA, V_TRIG_PREOP_F64)."""
    a, segment = np.broadcast_arrays(a, segment & np.uint32(31))
    exponents = a.view(np.uint64) >> np.uint64(52) & np.uint64(0x7FF)
    found = np.zeros(a.shape, np.float64)
    for index in np.ndindex(a.shape):
        exponent = int(exponents[index])
        shift = 53 * int(segment[index]) + max(0, exponent - 1077)
        piece = (_two_over_pi() << shift >> 1201 - 53) & ((1 << 53) - 1)
        found[index] = math.ldexp(piece, -53 - shift + (128 if exponent >= 1968 else 0))
    return found


_FLUSHING = ("exp", "log", "rcp", "rsq", "sqrt", "mad", "mac", "madmk", "madak")


def _of_three(pick: Compute) -> Compute:
    """v_maximum3 and v_minimum3: NaN where one of them is (CDNA4 ISA)."""

    def compute(a: Array, b: Array, c: Array) -> Array:
        return np.where(np.isnan(a) | np.isnan(b) | np.isnan(c), a + b + c, pick(pick(a, b), c))

    return compute


def _legacy_product(a: Array, b: Array) -> Array:
    """A product that is 0 where a factor is, also of infinity and NaN."""
    return np.where((a == 0) | (b == 0), 0, a * b).astype(np.float32)


def _legacy_product_and_sum(a: Array, b: Array, c: Array) -> Array:
    return _legacy_product(a, b) + c


largest, smallest = _extreme(larger=True), _extreme(larger=False)
maximum3, minimum3 = _of_three(largest), _of_three(smallest)
FLOATING: dict[str, Row] = {}


def _add_rows(kind: str) -> None:
    def name(base: str) -> str:
        return f"v_{base}_{kind}"

    two, three = f"{kind} {kind}", f"{kind} {kind} {kind}"
    fused = fused_multiply_add(kind)
    short = kind != "f64"
    approximated: Slots = "transcendental" if short else QUARTER_RATE
    rows = {
        "add": row(two, lambda a, b: a + b, short=short),
        "mul": row(two, lambda a, b: a * b, short=short),
        "max": row(two, largest, short=short),
        "min": row(two, smallest, short=short),
        "fma": row(three, fused),
        "fmac": row(three, fused, accumulates=True),
        "fract": row(kind, _fraction),
        "trunc": row(kind, np.trunc),
        "ceil": row(kind, np.ceil),
        "floor": row(kind, np.floor),
        "rndne": row(kind, np.rint),
        "rcp": row(kind, _rounded(kind, lambda a: 1 / a), slots=approximated),
        "rsq": row(kind, _rounded(kind, lambda a: 1 / np.sqrt(a)), slots=approximated),
        "sqrt": row(kind, _rounded(kind, np.sqrt), slots=approximated),
        "ldexp": row(
            f"{kind} {'i16' if kind == 'f16' else 'i32'}", _load_exponent, short=kind == "f16"
        ),
        "frexp_mant": row(kind, _mantissa),
        "div_fixup": row(three, _fix_division),
    }
    if kind != "f64":
        rows |= {
            "sub": row(two, lambda a, b: a - b),
            "subrev": row(two, lambda a, b: b - a),
            "max3": row(three, lambda a, b, c: largest(largest(a, b), c)),
            "min3": row(three, lambda a, b, c: smallest(smallest(a, b), c)),
            "med3": row(three, _median),
            "exp": row(kind, _rounded(kind, np.exp2), slots=approximated),
            "log": row(kind, _rounded(kind, _log2), slots=approximated),
            "sin": row(kind, _periodic(kind, np.sin, 0), slots=approximated),
            "cos": row(kind, _periodic(kind, np.cos, 1), slots=approximated),
            "mad": row(three, lambda a, b, c: a * b + c),
            "mac": row(three, lambda a, b, c: a * b + c, accumulates=True),
            "fmamk": row(three, fused, bare=True, short=True),
            "fmaak": row(three, fused, bare=True, short=True),
            "madmk": row(three, lambda a, k, b: a * k + b, bare=True, short=True),
            "madak": row(three, lambda a, b, k: a * b + k, bare=True, short=True),
            "minimum3": row(three, minimum3),
            "maximum3": row(three, maximum3),
        }
    if kind == "f32":
        for base in _FLUSHING:
            rows[base] = replace(rows[base], compute=flushing(rows[base].compute, kind))
        # The two differ in the exceptions that they raise, and nobody traps those.
        rows["rcp_iflag"] = rows["rcp"]
    FLOATING.update({name(base): entry for base, entry in rows.items()})


for _kind in ("f16", "f32", "f64"):
    _add_rows(_kind)
FLOATING |= {
    "v_mul_legacy_f32": row("f32 f32", _legacy_product, short=False),
    "v_mad_legacy_f32": row("f32 f32 f32", flushing(_legacy_product_and_sum, "f32")),
    "v_trig_preop_f64": row("f64 u32", _piece_of_two_over_pi, short=False),
    "v_frexp_exp_i32_f32": row("f32", _exponent(np.int32)),
    "v_frexp_exp_i32_f64": row("f64", _exponent(np.int32)),
    "v_frexp_exp_i16_f16": row("f16", _exponent(np.int16)),
}  # fmt: skip
# What GFX8 had of these clears the upper half of its target, and has no op_sel.
for _base in ("mad", "fma", "div_fixup"):
    FLOATING[f"v_{_base}_legacy_f16"] = replace(FLOATING[f"v_{_base}_f16"], op_sel=False)
for _base in ("exp", "log"):
    FLOATING[f"v_{_base}_legacy_f32"] = FLOATING[f"v_{_base}_f32"]
