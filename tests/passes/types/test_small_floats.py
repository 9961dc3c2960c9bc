"""Elements of E2M1 that are put together of bits: every code, wherever it lies in a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tvm import tirx

import mfmadsl
from mfmadsl.model.numpy_type import numpy_type
from tests.passes.kernels import assert_same, computed, schedule

CHIPS = ["gfx908", "gfx942", "gfx950"]
TYPES = {"float16": (10, 15), "bfloat16": (7, 127), "float32": (23, 127)}
"""Bits of the fraction, and the bias of the exponent."""

EVERY_BYTE = np.resize(np.arange(256, dtype=np.uint8), 1024)
WORDS = np.random.default_rng(0).integers(0, 2**32, 1024, np.uint32)
Stage = Callable[..., Any]


def bits_of(code: Any, dtype: str) -> Any:
    """The number of a code as bits, times the power of two by which the biases differ."""
    fraction, _ = TYPES[dtype]
    size = np.dtype(numpy_type(dtype)).itemsize * 8
    code = code.astype(f"uint{size}")

    def number(value: int) -> Any:
        return tirx.const(value, f"uint{size}")

    sign = (code & number(8)) << number(size - 4)
    return tirx.reinterpret(dtype, sign | (code & number(7)) << number(fraction - 1))


def element(code: Any, dtype: str) -> Any:
    _, bias = TYPES[dtype]
    return bits_of(code, dtype) * tirx.const(2.0 ** (bias - 1), dtype)


def nibble(word: Any, shift: Any, dtype: str = "uint8") -> Any:
    return word >> shift & tirx.const(15, dtype)


def numbers(codes: Any, dtype: str) -> Any:
    """What ml_dtypes makes of codes."""
    wide = codes.astype(np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    return wide.astype(numpy_type(dtype))


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("dtype", list(TYPES))
@pytest.mark.parametrize("shift", [0, 4])
def test_elements_of_bytes(arch: str, dtype: str, shift: int) -> None:
    def stage(q: Any) -> Any:
        return element(nibble(q, tirx.const(shift, "uint8")), dtype)

    wanted = numbers(EVERY_BYTE >> shift & 15, dtype)
    assert_same(computed(stage, EVERY_BYTE, out=dtype, arch=arch), wanted)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("dtype", list(TYPES))
@pytest.mark.parametrize("word", ["uint32", "int32"])
@pytest.mark.parametrize("shift", range(0, 32, 4))
def test_elements_of_words(arch: str, dtype: str, word: str, shift: int) -> None:
    """A shift of a word with a sign repeats that, but for the uppermost field beyond the mask."""

    def stage(q: Any) -> Any:
        return element(nibble(q, tirx.const(shift, word), word), dtype)

    wanted = numbers(WORDS >> np.uint32(shift) & 15, dtype)
    assert_same(computed(stage, WORDS.view(word), out=dtype, arch=arch), wanted)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("width", [1, 8])
def test_an_element_at_a_place_that_is_computed(arch: str, width: int) -> None:
    def stage(q: Any, place: Any) -> Any:
        return element(nibble(q, place % tirx.const(8, "int32") * 4, "int32"), "float16")

    places = np.random.default_rng(1).integers(0, 1000, WORDS.shape, np.int32)
    wanted = numbers(WORDS >> (places % 8 * 4).astype(np.uint32) & 15, "float16")
    found = computed(stage, WORDS.view("int32"), places, out="float16", arch=arch, width=width)
    assert_same(found, wanted)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("dtype", list(TYPES))
def test_bits_times_other_powers_of_two(arch: str, dtype: str) -> None:
    """Denormal ones, as the bits say, and those whose factor is not the biases' difference."""
    _, bias = TYPES[dtype]
    low = tirx.const(0, "uint8")
    for power in (bias - 3, bias - 2, bias):

        def stage(q: Any, power: int = power) -> Any:
            return bits_of(nibble(q, low), dtype) * tirx.const(2.0**power, dtype)

        wide = numbers(EVERY_BYTE & 15, "float32") * np.float32(2.0 ** (power - bias + 1))
        found = computed(stage, EVERY_BYTE, out=dtype, arch=arch)
        assert_same(found, wide.astype(numpy_type(dtype)))


def not_elements() -> dict[str, Stage]:
    def number(value: int) -> Any:
        return tirx.const(value, "uint16")

    def reinterpreted(bits: Any) -> Any:
        return tirx.reinterpret("float16", bits) * tirx.const(16384.0, "float16")

    def plain(q: Any) -> Any:
        return nibble(q, tirx.const(0, "uint8")).astype("uint16")

    return {
        "a sign elsewhere": lambda q: reinterpreted(
            (plain(q) & number(8)) << number(11) | (plain(q) & number(7)) << number(9)
        ),
        "a larger fraction": lambda q: reinterpreted(
            (plain(q) & number(8)) << number(12) | (plain(q) & number(7)) << number(8)
        ),
        "no sign": lambda q: reinterpreted((plain(q) & number(7)) << number(9)),
        "two fields": lambda q: reinterpreted(
            (plain(q) & number(8)) << number(12)
            | ((q >> tirx.const(4, "uint8") & tirx.const(15, "uint8")).astype("uint16") & number(7))
            << number(9)
        ),
        "a field across bytes": lambda q: element(
            nibble(q.astype("uint16") * number(257), number(6), "uint16"), "float16"
        ),
    }


@pytest.mark.parametrize("name", list(not_elements()))
def test_other_bits_stay_as_they_are(name: str) -> None:
    stage = not_elements()[name]
    q = EVERY_BYTE.astype(np.uint16)
    low, high = q & 15, q >> 4
    if name == "a field across bytes":
        wanted = numbers(q * np.uint16(257) >> np.uint16(6) & 15, "float16")
    else:
        sign, size = {
            "a sign elsewhere": ((low & 8) << 11, (low & 7) << 9),
            "a larger fraction": ((low & 8) << 12, (low & 7) << 8),
            "no sign": (0 * low, (low & 7) << 9),
            "two fields": ((low & 8) << 12, (high & 7) << 9),
        }[name]
        with np.errstate(over="ignore"):
            wanted = (sign | size).astype(np.uint16).view(np.float16) * np.float16(16384)
    assert_same(computed(stage, EVERY_BYTE, out="float16"), wanted)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("code", range(16))
def test_elements_times_every_scale(arch: str, dtype: str, code: int) -> None:
    """Each factor is rounded to the type, and so is their product: infinite and NaN ones as well.

    gfx950 and gfx942 have denormal halves; bfloat16 has all of these scales.
    """
    q = np.full(1024, code * 17, np.uint8)

    def stage(q: Any, scale: Any) -> Any:
        power = tirx.reinterpret("float8_e8m0fnu", scale).astype("float32").astype(dtype)
        return element(nibble(q, tirx.const(4, "uint8")), dtype) * power

    scales = EVERY_BYTE.view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    with np.errstate(all="ignore"):
        wanted = numbers(q & 15, dtype) * scales.astype(numpy_type(dtype))
    assert_same(computed(stage, q, EVERY_BYTE, out=dtype, arch=arch), wanted)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gfx950_converts_two_elements_at_once(dtype: str) -> None:
    """And rounds no product of an element and a power of two on gfx942."""
    workload = mfmadsl.quantised_matmul(16, 64, 512, "mxfp4", dtype)
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch="gfx950"), "gfx950")
    assert "v_cvt_scalef32_pk_f" in kernel.assembly
    before = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch="gfx942"), "gfx942").assembly
    assert str(0x46444240) in before or "0x46444240" in before  # the upper bytes of 6, 4, 3 and 2
    assert "v_add3_u32" not in before


def test_an_element_is_no_constant_of_a_kernel() -> None:
    kernel = mfmadsl.build(
        schedule(lambda q: element(nibble(q, tirx.const(0, "uint8")), "float16"), [("uint8", 512)]),
        "gfx950",
    )
    assert kernel.assembly.count("v_cvt_scalef32_pk_f16_fp4") == 1
