"""Reading A and B: every code of every format against ml_dtypes, and what chips leave out."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from mfmadsl.emulator.instructions.matrix.arithmetic import Sum
from mfmadsl.emulator.instructions.matrix.formats import format_of
from mfmadsl.emulator.instructions.matrix.numbers import Numbers, read_numbers
from tests.emulator.instructions.test_number import TYPES as NARROW_TYPES

Words = npt.NDArray[np.uint32]

TYPES = [
    ("gfx942", "f16", np.float16),
    ("gfx942", "bf16", ml_dtypes.bfloat16),
    *NARROW_TYPES,
]
EVERY = pytest.mark.parametrize(
    ("arch", "kind", "dtype"), TYPES, ids=lambda x: getattr(x, "__name__", x)
)


def read(words: Words, kind: str, arch: str, how: Sum, items: int) -> Numbers:
    """All that 64 lanes hold, (registers, 64), as 16 rows in each of four groups of lanes."""
    lanes = np.repeat(np.arange(0, 64, 16), items)
    return read_numbers(
        np.ascontiguousarray(words[:, None]), format_of(kind, arch), how, lanes,
        np.tile(np.arange(items), 4), 16,
    )  # fmt: skip


def by_lane(values: npt.NDArray[Any], items: int) -> npt.NDArray[Any]:
    """Back to (64, items)."""
    return values.reshape(4, items, 16).transpose(0, 2, 1).reshape(64, items)


def packed(codes: npt.NDArray[np.uint64], bits: int) -> Words:
    """Codes (64, items), from the lowest bit of a lane's registers up, as (registers, 64)."""
    count = codes.shape[1] * bits // 32
    lanes = [sum(int(code) << bits * i for i, code in enumerate(lane)) for lane in codes]
    octets = b"".join(lane.to_bytes(4 * count, "little") for lane in lanes)
    return np.frombuffer(octets, np.uint32).reshape(64, count).T.copy()


def every_code(kind: str, arch: str, dtype: Any) -> tuple[Words, npt.NDArray[np.float64]]:
    """Registers that hold all codes of a format, or a quarter of those of 16 bits, and the numbers
    that they are, (64, items)."""
    bits = format_of(kind, arch).bits
    items = 32 if bits < 16 else 256
    codes = (np.arange(64 * items) * (4 if bits == 16 else 1) % (1 << bits)).reshape(64, items)
    with np.errstate(invalid="ignore"):  # NaN
        numbers = codes.astype(f"u{max(1, bits // 8)}").view(dtype).astype(np.float64)
    return packed(codes.astype(np.uint64), bits), numbers


@EVERY
def test_every_code_is_the_number_that_it_should_be(arch: str, kind: str, dtype: Any) -> None:
    words, expected = every_code(kind, arch, dtype)
    items = expected.shape[1]
    found = by_lane(read(words, kind, arch, Sum("once"), items).values, items)
    np.testing.assert_array_equal(found, expected)
    assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all()


@EVERY
def test_significands_and_exponents_make_the_same_number(arch: str, kind: str, dtype: Any) -> None:
    words, expected = every_code(kind, arch, dtype)
    items = expected.shape[1]
    how = Sum("aligned", overflowing=kind == "bf16")
    numbers = read(words, kind, arch, how, items)
    factors, exponents = by_lane(numbers.values, items), by_lane(numbers.exponents, items)
    special, zero = ~np.isfinite(expected), expected == 0
    assert (exponents[special | zero] == how.zero_exponent).all()
    others = exponents[~special & ~zero]
    assert how.zero_exponent + others.max() < 2 * others.min()
    exponents[special | zero] = 0
    wide = factors.astype(np.float64)
    # Narrow factors are the numbers themselves.
    significands, found = (
        (np.ldexp(wide, -exponents), wide) if how.narrow else (wide, np.ldexp(wide, exponents))
    )
    assert (np.abs(significands[~special]) < 2).all()
    np.testing.assert_array_equal(found, expected)
    assert (numbers.peak < np.inf) != special.any()
    assert special.any() or numbers.peak == np.abs(expected).max()


def test_xf32_is_cut_to_ten_bits_of_mantissa() -> None:
    values = np.array([1 + 2**-10, 1 + 2**-11, 1 + 3 * 2**-11, np.inf, -1 - 2**-11, 1e-40], "f4")
    words = np.resize(values, 64).view(np.uint32)[None]
    found = by_lane(read(words, "xf32", "gfx942", Sum("chain"), 1).values, 1)[:5, 0]
    assert found.tolist() == [1 + 2**-10, 1, 1 + 2**-10, np.inf, -1]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_gfx90a_takes_denormals_for_zero_of_no_sign(kind: str) -> None:
    dtype = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}[kind]
    smallest = float(ml_dtypes.finfo(dtype).smallest_normal)
    values = np.array([smallest, -smallest, smallest / 2, -smallest / 2, -0.0, 1], dtype)
    codes = np.resize(values, 128).reshape(64, 2).view(np.uint16).astype(np.uint64)
    found = by_lane(read(packed(codes, 16), kind, "gfx90a", Sum("pairs"), 2).values, 2).ravel()[:6]
    assert found.tolist() == [smallest, -smallest, 0, 0, 0, 1]
    assert not np.signbit(found[2:5]).any()


def test_doubles_take_two_registers() -> None:
    values = np.random.default_rng(1).standard_normal(64)
    words = values.view(np.uint32).reshape(64, 2).T.copy()
    found = by_lane(read(words, "f64", "gfx942", Sum("chain", double=True), 1).values, 1)
    assert (found[:, 0] == values).all()


def test_bytes_have_signs() -> None:
    codes = np.arange(256, dtype=np.uint64).reshape(64, 4)
    found = by_lane(read(packed(codes, 8), "i8", "gfx942", Sum("integers"), 4).values, 4)
    assert (found.ravel() == np.arange(256, dtype=np.uint8).view(np.int8)).all()
