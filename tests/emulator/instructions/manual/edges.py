"""The values of a type at which instructions go wrong."""

from __future__ import annotations

import random
from functools import cache

from hypothesis import strategies as st

from tests.emulator.instructions.manual.bits import FORMATS, rounded

_NUMBERS = [0.5, 1, 1.5, 2.5, 3, 5, 100, 255, 255.5, 256, 257, 300.25, 32767, 65504, 65520, 65535.5,
            2.0**31 - 128, 2.0**31, 2.0**32 - 256, 2.0**32, 1e-3, 0.999]  # fmt: skip


@cache
def _edges(kind: str) -> list[int]:
    """Bits of a type that are special in it: ends of ranges, shifts of a width and more, and for
    floats zeros, denormals, infinities and both kinds of NaN."""
    bits = int(kind[1:])
    top = 1 << (bits - 1)
    if kind[0] != "f":
        small = [0, 1, 2, 7, 8, 15, 16, 17, 20, 31, 32, 33, 63, 64]
        ends = [top - 1, top, top + 1, 2 * top - 1, 2 * top - 2, 0x5555_5555_5555_5555 % (2 * top)]
        return small + ends + [x << k for k in (8, 15) for x in (1, 3) if x << k < 2 * top]
    exponent, mantissa = FORMATS[kind]
    infinity = ((1 << exponent) - 1) << mantissa
    special = [0, 1, (1 << mantissa) - 1, 1 << mantissa, infinity - 1, infinity,
               infinity | 1 << (mantissa - 1), infinity | 1]  # fmt: skip
    positive = special + [rounded(float(x), kind) for x in _NUMBERS]
    return positive + [x | top for x in positive]


@cache
def _pool(kind: str) -> list[int]:
    """Usual values of a type."""
    generator, bits = random.Random(kind), int(kind[1:])
    anything = [generator.getrandbits(bits) for _ in range(400)]
    if kind[0] != "f":
        return anything
    return anything[::2] + [rounded(generator.uniform(-300, 300), kind) for _ in range(200)]


def sample(kind: str, generator: random.Random, count: int) -> list[int]:
    """So many values of a type, half of them edges."""
    pools = (_edges(kind), _pool(kind))
    return [generator.choice(pools[generator.random() < 0.5]) for _ in range(count)]


def values(kind: str) -> st.SearchStrategy[int]:
    """Bits of a type, with those that are special in it."""
    bits = int(kind[1:])
    everything = st.integers(0, 2**bits - 1)
    if kind[0] != "f":
        edges = st.sampled_from([0, 1, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2**bits - 1])
        return everything | edges | st.integers(0, 64)
    usual = st.floats(-300, 300).map(lambda x: rounded(x, kind))
    exponent, mantissa = FORMATS[kind]
    tiny = st.integers(0, 1 << mantissa)
    infinite = st.sampled_from([0, 1]).map(
        lambda s: s << (bits - 1) | ((1 << exponent) - 1) << mantissa
    )
    return everything | usual | usual | tiny | infinite
