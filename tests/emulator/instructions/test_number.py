"""Narrow floats against ml_dtypes, code by code."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from mfmadsl.emulator.instructions.number import narrow_floats, scales

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


def test_a_scale_is_a_power_of_two_or_not_a_number() -> None:
    found = scales(np.array([127, 128, 0, 254, 255], np.uint32))
    assert found[:4].tolist() == [1, 2, 2.0**-127, 2.0**127]
    assert np.isnan(found[4])
