"""bfloat16 of small integers: what is not rounded in between would not change by that."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tvm import tirx

import mfmadsl
from tests.passes.kernels import assert_same, computed, schedule

CHIPS = ["gfx942", "gfx950"]
BFLOAT = np.dtype(ml_dtypes.bfloat16)
EVERY_BYTE = np.resize(np.arange(256, dtype=np.uint8), 1024)
EVERY_NUMBER = np.arange(1 << 16, dtype=np.uint16).view(BFLOAT)
"""All bfloat16: NaN with each of its bits, infinities, denormal ones, both zeros."""


def constant(number: float) -> Any:
    return tirx.const(number, "bfloat16")


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("nibble", [0, 1, 7, 8, 15])
def test_weights_times_every_scale(arch: str, nibble: int) -> None:
    q = np.full(EVERY_NUMBER.shape, nibble << 4, np.uint8)

    def stage(q: Any, scale: Any) -> Any:
        number = (q >> tirx.const(4, "uint8")).astype("bfloat16") - constant(8)
        return number * scale

    with np.errstate(all="ignore"):
        wanted = BFLOAT.type(nibble - 8) * EVERY_NUMBER
    assert_same(computed(stage, q, EVERY_NUMBER, out="bfloat16", arch=arch), wanted)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("less", [0.0, 1.0, -1.0, 128.0, 129.0, 0.5, 256.0, float("inf")])
def test_numbers_less_a_constant(arch: str, dtype: str, less: float) -> None:
    """Rounded, where the difference may be none of the integers that bfloat16 has."""
    numbers = EVERY_BYTE.view(dtype)

    def stage(x: Any) -> Any:
        return x.astype("bfloat16") - constant(less)

    wanted = numbers.astype(BFLOAT) - BFLOAT.type(less)
    assert_same(computed(stage, numbers, out="bfloat16", arch=arch), wanted)


@pytest.mark.parametrize("arch", CHIPS)
def test_zero_points_and_what_is_made_of_them(arch: str) -> None:
    weights, zeros = (EVERY_BYTE & 15), np.roll(EVERY_BYTE & 15, 3)
    scales = np.resize(EVERY_NUMBER[0x3C00:0x4300], EVERY_BYTE.shape)

    def stage(q: Any, z: Any, scale: Any) -> Any:
        low = tirx.const(15, "uint8")
        number = (q & low).astype("bfloat16") - ((z & low).astype("int32") + 1).astype("bfloat16")
        return (scale * number + number) * number

    number = weights.astype(BFLOAT) - (zeros.astype(np.int32) + 1).astype(BFLOAT)
    wanted = (scales * number + number) * number
    assert_same(computed(stage, weights, zeros, scales, out="bfloat16", arch=arch), wanted)


def test_a_weight_takes_one_rounding() -> None:
    def stage(q: Any, scale: Any) -> Any:
        return (q.astype("bfloat16") - constant(128)) * scale

    kernel = mfmadsl.build(schedule(stage, [("uint8", 1024), ("bfloat16", 1024)]), "gfx950")
    assert kernel.assembly.count("v_cvt_pk_bf16_f32") == 1
