"""Narrow floats against ml_dtypes, code by code."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from mfmadsl.emulator.number import decode, narrow_floats, scales

TYPES = [
    ("gfx942", "fp8", ml_dtypes.float8_e4m3fnuz),
    ("gfx942", "bf8", ml_dtypes.float8_e5m2fnuz),
    ("gfx950", "fp8", ml_dtypes.float8_e4m3fn),
    ("gfx950", "bf8", ml_dtypes.float8_e5m2),
    ("gfx950", "fp6", ml_dtypes.float6_e2m3fn),
    ("gfx950", "bf6", ml_dtypes.float6_e3m2fn),
    ("gfx950", "fp4", ml_dtypes.float4_e2m1fn),
]


@pytest.mark.parametrize(("arch", "kind", "dtype"), TYPES, ids=lambda x: getattr(x, "__name__", x))
def test_every_code_is_the_number_that_it_should_be(arch: str, kind: str, dtype: type) -> None:
    number = narrow_floats(arch)[kind]
    codes = np.arange(1 << number.bits, dtype=np.uint8)
    expected = codes.view(dtype).astype(np.float32)
    found = np.array([number.value(int(code)) for code in codes], np.float32)
    np.testing.assert_array_equal(found, expected)


def test_six_bits_are_packed_from_the_lowest_up() -> None:
    codes = [1, 2, 3, 60, 5, 6, 33, 8, 9, 10, 11, 12, 13, 14, 15, 31]
    word = sum(code << 6 * i for i, code in enumerate(codes))
    words = np.frombuffer(word.to_bytes(12, "little"), np.uint32).reshape(1, 1, 3)
    number = narrow_floats("gfx950")["fp6"]
    assert decode(words, "fp6", "gfx950")[0, 0].tolist() == [number.value(c) for c in codes]


def test_xf32_keeps_ten_bits_of_mantissa_and_ties_go_to_even() -> None:
    values = np.array([1 + 2**-10, 1 + 2**-11, 1 + 3 * 2**-11, np.inf, -1.0], np.float32)
    found = decode(values.view(np.uint32).reshape(1, 1, -1), "xf32", "gfx942")[0, 0]
    assert found.tolist() == [1 + 2**-10, 1, 1 + 2**-9, np.inf, -1.0]


def test_a_scale_is_a_power_of_two_or_not_a_number() -> None:
    found = scales(np.array([127, 128, 0, 254, 255], np.uint32))
    assert found[:4].tolist() == [1, 2, 2.0**-127, 2.0**127]
    assert np.isnan(found[4])
