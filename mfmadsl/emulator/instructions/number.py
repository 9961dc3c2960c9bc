"""Number formats of matrix cores as NumPy floats.

Sources: CDNA3 ISA, section 7.2 (fp8 and bf8, fnuz), the OCP formats FP8 (OFP8) and MX, for gfx950.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.machine.bits import Array
from mfmadsl.model import assumed


@dataclass(frozen=True)
class NarrowFloat:
    """A float of at most eight bits.

    `nan` lists the codes of NaN, sign aside. With `infinity`, an exponent of all ones is infinity
    or NaN; `unsigned_zero` makes the code of -0 the only NaN.
    """

    exponent_bits: int
    mantissa_bits: int
    bias: int
    nan: tuple[int, ...] = ()
    infinity: bool = False
    unsigned_zero: bool = False

    @property
    def bits(self) -> int:
        """How many bits a number has."""
        return 1 + self.exponent_bits + self.mantissa_bits

    def value(self, code: int) -> float:
        """The number that a bit pattern stands for."""
        magnitude = code & ((1 << (self.bits - 1)) - 1)
        sign = -1.0 if code >> (self.bits - 1) else 1.0
        if self.unsigned_zero and sign < 0 and not magnitude:
            return float("nan")
        exponent, mantissa = magnitude >> self.mantissa_bits, magnitude & self._mask
        if self.infinity and exponent == (1 << self.exponent_bits) - 1:
            return sign * float("inf") if not mantissa else float("nan")
        if magnitude in self.nan:
            return float("nan")
        fraction = mantissa / (1 << self.mantissa_bits)
        if not exponent:
            return float(sign * fraction * 2.0 ** (1 - self.bias))
        return float(sign * (1 + fraction) * 2.0 ** (exponent - self.bias))

    @property
    def _mask(self) -> int:
        return (1 << self.mantissa_bits) - 1


OCP = {
    "fp8": NarrowFloat(4, 3, bias=7, nan=(0x7F,)),
    "bf8": NarrowFloat(5, 2, bias=15, infinity=True),
    "fp6": NarrowFloat(2, 3, bias=1),
    "bf6": NarrowFloat(3, 2, bias=3),
    "fp4": NarrowFloat(2, 1, bias=1),
}
FNUZ = {
    **OCP,
    "fp8": NarrowFloat(4, 3, bias=8, unsigned_zero=True),
    "bf8": NarrowFloat(5, 2, bias=16, unsigned_zero=True),
}


def narrow_floats(arch: str) -> Mapping[str, NarrowFloat]:
    """CDNA3's eight-bit floats are its own; all later chips have OCP's."""
    return FNUZ if "fnuz" in assumed(arch).formats else OCP


def values_of(number: NarrowFloat, codes: Array) -> npt.NDArray[np.float32]:
    """The numbers that codes stand for."""
    return _table(number)[codes]


def to_narrow(values: Array, number: NarrowFloat, saturate: bool) -> Array:
    """The codes of the nearest numbers, ties to even.

    What rounds to more than the largest number becomes infinity, where there is one, else NaN;
    with `saturate` it becomes the largest number, as it does in a format without NaN.
    """
    finite = _magnitudes(number)
    beyond = 2 * finite[-1] - finite[-2]
    steps = np.append(finite, beyond)
    magnitude = np.abs(values.astype(np.float64))
    upper = np.clip(np.searchsorted(steps, magnitude), 1, len(steps) - 1)
    middle = (steps[upper - 1] + steps[upper]) / 2
    even = upper % 2 == 0
    code = np.where((magnitude > middle) | ((magnitude == middle) & even), upper, upper - 1)
    return _coded(values, code, number, saturate)


def to_narrow_by_seed(
    values: Array, seed: Array, mantissa_bits: int, number: NarrowFloat, saturate: bool
) -> Array:
    """The codes of numbers whose magnitude is rounded by random bits: added to it, and cut off.

    `mantissa_bits` are those of the format that the numbers had. Of the seed the upper bits count,
    as many as the narrow format has fewer (CDNA4 ISA, V_CVT_SR_FP8_F32: S1[31 : 12]). A number
    below the smallest normal one is first cut to its place, as AMD's host functions do it
    (`from_float_sr` of HIP's `amd_hip_ocp_host.hpp`, `convert_to_type_sr` of Composable Kernel).
    """
    dropped = mantissa_bits - number.mantissa_bits
    magnitude = np.abs(values.astype(np.float64))
    finite = np.where(np.isfinite(magnitude), magnitude, 0.0)
    lowest = 1 - number.bias
    exponent = np.where(finite == 0, lowest, np.maximum(np.frexp(finite)[1] - 1, lowest))
    units = np.floor(np.ldexp(finite, mantissa_bits - exponent)).astype(np.int64)
    rounded = units + (seed >> np.uint32(32 - dropped)) >> dropped
    code = rounded + (exponent - lowest << number.mantissa_bits)
    code = np.where(np.isinf(magnitude), len(_magnitudes(number)), code)
    return _coded(values, code, number, saturate)


def _coded(values: Array, code: Array, number: NarrowFloat, saturate: bool) -> Array:
    """Codes with the signs of values; a code behind the largest number stands for too much."""
    largest = len(_magnitudes(number)) - 1
    sign = np.signbit(values).astype(np.int64) << (number.bits - 1)
    if number.unsigned_zero:
        sign = np.where(code == 0, 0, sign)
    over = code > largest
    if saturate:
        # An infinity is infinite still on chips with fnuz floats, of which no manual says more.
        keeps = np.isinf(values) & number.unsigned_zero
        code = np.where(over & ~keeps, largest, code)
        over = over & keeps
    code = np.minimum(code, largest + 1)  # where there is an infinity, it follows the largest
    not_a_number = _nan_code(number)
    code = code | sign
    if not number.infinity:
        code = np.where(over, not_a_number, code)
    return np.where(np.isnan(values), not_a_number, code).astype(np.uint8)


def powers_of(scale: Array) -> Array:
    """The powers of two that floats of 32 bits stand for as scales, in float64.

    Only the exponent counts, as E8M0: 2**(exponent - 127), and 255 is NaN (CDNA4 ISA, section 7.3).
    """
    return scales(scale.view(np.uint32) >> np.uint32(23) & np.uint32(0xFF))


@cache
def _magnitudes(number: NarrowFloat) -> npt.NDArray[np.float64]:
    """The finite numbers from 0 up; the code of each is its place."""
    values = [number.value(code) for code in range(1 << (number.bits - 1))]
    return np.array([value for value in values if np.isfinite(value)])


def _nan_code(number: NarrowFloat) -> int:
    codes = range((1 << number.bits) - 1, -1, -1)
    return next((code for code in codes if np.isnan(number.value(code))), (1 << number.bits) - 1)


@cache
def _table(number: NarrowFloat) -> npt.NDArray[np.float32]:
    return np.array([number.value(code) for code in range(1 << number.bits)], dtype=np.float32)


def scales(codes: Array) -> Array:
    """E8M0: a power of two, 2**(code - 127); 255 is NaN."""
    powers = np.ldexp(1.0, codes.astype(np.int64) - 127)
    return np.where(codes == 255, np.nan, powers)


def from_bfloat(bits: Array) -> npt.NDArray[np.float32]:
    """The numbers that the bits of bfloat16 stand for."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_bfloat(a: Array) -> Array:
    """The bits of the nearest bfloat16, ties to even; NaN stays NaN."""
    bits = a.astype(np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    quiet = bits >> np.uint32(16) | np.uint32(0x40)
    return np.where(np.isnan(a), quiet, rounded).astype(np.uint16)
