"""What random bits round to, in exact numbers.

Sources: CDNA4 ISA, section 7.3, V_CVT_SR_FP8_F32 and V_PRNG_B32; HIP's `amd_hip_ocp_host.hpp`,
`from_float_sr`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from math import floor

MANTISSA_BITS = {"f32": 23, "f16": 10, "bf16": 7}


def by_seed(
    value: Fraction, seed: int, kind: str, finite: Sequence[Fraction], mantissa: int
) -> int:
    """The place, among the numbers of a format from 0 up, that a value of a `kind` is rounded to.

    `finite` are those numbers, and one more behind the largest. Of the way from the one below the
    value to the next as many upper bits count as the format lacks, and so many bits of the seed
    are added to them: with what is more than the whole way the next one is taken.
    """
    dropped = MANTISSA_BITS[kind] - mantissa
    below = min(bisect_right(finite, value) - 1, len(finite) - 1)
    if below == len(finite) - 1:
        return below
    way = (value - finite[below]) / (finite[below + 1] - finite[below])
    whole = 1 << dropped
    return below + (floor(way * whole) + (seed >> 32 - dropped) >= whole)


def next_seed(seed: int) -> int:
    """The seed of the next of several numbers."""
    return (seed << 1 ^ (0b11000101 if seed >> 31 else 0)) & 0xFFFF_FFFF
