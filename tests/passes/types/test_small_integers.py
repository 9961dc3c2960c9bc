"""Small integers become float16 by their bits: every value is that of a conversion."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm import tirx

import mfmadsl
from tests.passes.kernels import assert_same, computed, schedule

CHIPS = ["gfx90a", "gfx950"]
EIGHT = tirx.const(8, "float16")
WORDS = np.random.default_rng(0).integers(0, 2**32, 4096, np.uint32)
EVERY_BYTE = np.resize(np.arange(256, dtype=np.uint8), 1024)


def field(shift: int, bits: int, dtype: str = "uint32") -> Callable[..., Any]:
    def stage(x: Any) -> Any:
        moved = x.astype(dtype) >> tirx.const(shift, dtype)
        return (moved & tirx.const((1 << bits) - 1, dtype)).astype("float16")

    return stage


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("bits", [1, 3, 4, 8, 10])
@pytest.mark.parametrize("shift", [0, 4, 13, 16, 22])
def test_fields_of_words(arch: str, bits: int, shift: int) -> None:
    wanted = (WORDS >> shift & (1 << bits) - 1).astype(np.float16)
    assert_same(computed(field(shift, bits), WORDS, out="float16", arch=arch), wanted)


def test_a_field_at_a_place_that_is_computed() -> None:
    def stage(x: Any, place: Any) -> Any:
        return (x >> place & tirx.const(15, "uint32")).astype("float16") - EIGHT

    places = np.resize(np.arange(29, dtype=np.uint32), WORDS.shape)
    wanted = (WORDS >> places & 15).astype(np.float16) - np.float16(8)
    assert_same(computed(stage, WORDS, places, out="float16"), wanted)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("bits", [1, 4, 10])
@pytest.mark.parametrize("shift", [0, 4, 16, 22, 28])
def test_fields_of_words_with_a_sign(arch: str, bits: int, shift: int) -> None:
    """A shift repeats the sign: where the mask takes some of that, it is no field."""
    words = WORDS.view(np.int32)
    wanted = (words >> shift & (1 << bits) - 1).astype(np.float16)
    assert_same(computed(field(shift, bits, "int32"), words, out="float16", arch=arch), wanted)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("dtype", ["int32", "uint32"])
@pytest.mark.parametrize("more", [0, 1, 1008, 1009])
def test_zero_points(arch: str, dtype: str, more: int) -> None:
    """A small integer less another one, which is exact; or one that is not that small."""

    def stage(x: Any) -> Any:
        nibbles = (x >> tirx.const(down, dtype) & tirx.const(15, dtype) for down in (4, 20))
        weight, zero = nibbles
        return weight.astype("float16") - (zero + tirx.const(more, dtype)).astype("float16")

    low, high = ((WORDS >> down & 15).astype(np.float16) for down in (4, 20))
    wanted = low - (high + np.float16(more))
    assert_same(computed(stage, WORDS.view(dtype), out="float16", arch=arch), wanted)


def test_two_numbers_that_have_other_amounts_too_much() -> None:
    """A byte with a sign has another one than one without."""
    signed = EVERY_BYTE.view(np.int8)

    def stage(x: Any, y: Any) -> Any:
        return x.astype("float16") - y.astype("float16")

    wanted = signed.astype(np.float16) - EVERY_BYTE.astype(np.float16)
    assert_same(computed(stage, signed, EVERY_BYTE, out="float16"), wanted)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_bytes(arch: str, width: int, dtype: str) -> None:
    x = EVERY_BYTE.view(dtype)
    found = computed(lambda e: e.astype("float16"), x, out="float16", arch=arch, width=width)
    assert_same(found, x.astype(np.float16))


NUMBERS = [8.0, -8.0, 0.0, 895.0, 896.0, -895.0, 1001.0, 1024.0, 2000.0, 0.5, 65504.0, float("inf")]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_what_is_subtracted_or_added_next(number: float, dtype: str) -> None:
    """At once where that is exact, and rounded as it is elsewhere."""
    x, half = EVERY_BYTE.view(dtype), tirx.const(number, "float16")
    with np.errstate(over="ignore"):
        sides = x.astype(np.float16), np.float16(number)
        wanted = sides[0] - sides[1], sides[0] + sides[1]
    less = computed(lambda e: e.astype("float16") - half, x, out="float16")
    more = computed(lambda e: e.astype("float16") + half, x, out="float16")
    assert_same(less, wanted[0])
    assert_same(more, wanted[1])


def test_the_same_conversion_twice() -> None:
    def stage(x: Any) -> Any:
        half = (x & tirx.const(15, "uint8")).astype("float16")
        return (half - EIGHT) * half

    low = (EVERY_BYTE & 15).astype(np.float16)
    assert_same(computed(stage, EVERY_BYTE, out="float16"), (low - np.float16(8)) * low)


def converts(stage: Callable[..., Any], dtype: str) -> bool:
    """Whether the kernel has instructions that convert."""
    kernel = mfmadsl.build(schedule(stage, [(dtype, 1024)]), "gfx942")
    return "v_cvt_f16" in kernel.assembly


def test_no_instruction_converts_them() -> None:
    assert not converts(field(4, 4), "uint32")
    assert not converts(field(4, 4, "int32"), "uint32")
    assert not converts(lambda x: x.astype("float16"), "int8")


SMALL = tirx.const(15, "uint16")
WRAPPING: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "a difference": (
        lambda x: (x.astype("uint16") - SMALL).astype("float16"),
        lambda x: x.astype(np.uint16) - np.uint16(15),
    ),
    "a maximum of it": (
        lambda x: tirx.max(x.astype("uint16") - SMALL, tirx.const(0, "uint16")).astype("float16"),
        lambda x: x.astype(np.uint16) - np.uint16(15),
    ),
    "a signed difference, cut": (
        lambda x: (x.astype("int32") - tirx.const(8, "int32")).astype("uint16").astype("float16"),
        lambda x: (x.astype(np.int32) - 8).astype(np.uint16),
    ),
    "a sum of bytes": (
        lambda x: (x + tirx.const(200, "uint8")).astype("uint32").astype("float16"),
        lambda x: x + np.uint8(200),
    ),
}


@pytest.mark.parametrize("name", WRAPPING)
def test_what_wraps_around_is_as_large_as_it_is(name: str) -> None:
    stage, exact = WRAPPING[name]
    with np.errstate(over="ignore"):
        wanted = exact(EVERY_BYTE).astype(np.float16)
    assert_same(computed(stage, EVERY_BYTE, out="float16"), wanted)


@pytest.mark.parametrize("mask", [0x3FF, 0x400, 0xFFFF, 0xFFFFF, 0xFFFFFFFF])
def test_masks_of_any_width(mask: int) -> None:
    def stage(x: Any) -> Any:
        return (x >> tirx.const(20, "uint32") & tirx.const(mask, "uint32")).astype("float16")

    wanted = (WORDS >> 20 & mask).astype(np.float16)
    assert_same(computed(stage, WORDS, out="float16"), wanted)


def test_the_highest_bits_need_no_mask() -> None:
    def stage(x: Any) -> Any:
        return (x >> tirx.const(28, "uint32")).astype("float16")

    assert not converts(stage, "uint32")
    assert_same(computed(stage, WORDS, out="float16"), (WORDS >> 28).astype(np.float16))


def test_others_are_converted() -> None:
    assert converts(field(4, 11), "uint32")
    assert converts(lambda x: x.astype("float16"), "int16")
    large = np.resize(np.arange(-(2**15), 2**15, dtype=np.int32), 2**16)
    found = computed(lambda x: x.astype("float16"), large, out="float16")
    assert_same(found, large.astype(np.float16))


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul])
def test_what_wraps_around_in_uint32(arch: str, operation: Callable[[Any, Any], Any]) -> None:
    """As a number without a sign does, whatever it becomes next."""
    seven, mask = np.uint32(7), np.uint32(0xF000000F)

    def stage(x: Any) -> Any:
        return operation(tirx.const(7, "uint32"), x & tirx.const(int(mask), "uint32")).astype(
            "float32"
        )

    wanted = operation(seven, WORDS & mask).astype(np.float32)
    assert_same(computed(stage, WORDS, out="float32", arch=arch), wanted)
