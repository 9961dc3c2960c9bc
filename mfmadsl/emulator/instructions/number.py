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
    with `saturate` it becomes the largest number.
    """
    finite = _magnitudes(number)
    beyond = 2 * finite[-1] - finite[-2]
    steps = np.append(finite, beyond)
    magnitude = np.abs(values.astype(np.float64))
    nan = np.isnan(magnitude)
    upper = np.clip(np.searchsorted(steps, magnitude), 1, len(steps) - 1)
    middle = (steps[upper - 1] + steps[upper]) / 2
    even = upper % 2 == 0
    code = np.where((magnitude > middle) | ((magnitude == middle) & even), upper, upper - 1)
    sign = np.signbit(values).astype(np.int64) << (number.bits - 1)
    if number.unsigned_zero:
        sign = np.where(code == 0, 0, sign)
    over = code == len(finite)
    if saturate:
        code = np.where(over & np.isfinite(magnitude), len(finite) - 1, code)
        over = over & np.isinf(magnitude)
    not_a_number = _nan_code(number)
    code = code | sign
    if not number.infinity:  # where there is one, it follows the largest number
        code = np.where(over, not_a_number, code)
    return np.where(nan, not_a_number, code).astype(np.uint8)


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
