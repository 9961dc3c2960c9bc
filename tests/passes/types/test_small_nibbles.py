"""Nibbles become float16 by the two of a byte: every value is that of a conversion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm import te, tirx
from tvm.s_tir import Schedule

import mfmadsl
from tests.passes.kernels import assert_same

CHIPS = ["gfx908", "gfx942", "gfx950"]
DTYPES = ["int32", "uint32"]
EACH = 8  # nibbles of a word
WORDS = np.random.default_rng(0).integers(0, 2**32, 512, np.uint32)
PLACES = np.arange(EACH, dtype=np.uint32)
NIBBLES = (WORDS[:, None] >> (PLACES * 4) & 15).astype(np.float16)
ZEROS = np.random.default_rng(1).integers(0, 2**31, WORDS.shape, np.int32)


def schedule(stage: Callable[[Any, Any], Any], dtype: str, place: Callable[[Any], Any]) -> Schedule:
    """A thread makes what `stage` says of the eight nibbles of a word, and of a zero point."""
    word = te.placeholder(WORDS.shape, name="word", dtype=dtype)
    zero = te.placeholder(WORDS.shape, name="zero", dtype="int32")

    def element(i: Any, j: Any) -> Any:
        moved = word[i] >> (place(j) * 4).astype(dtype) & tirx.const(15, dtype)
        return stage(moved.astype("float16"), zero[i])

    out = te.compute((len(WORDS), EACH), element, name="out")
    sch = Schedule(te.create_prim_func([word, zero, out]))
    words, nibbles = sch.get_loops(sch.get_sblock("out"))
    block, thread = sch.split(words, [None, 64])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    sch.vectorize(nibbles)
    return sch


def made(
    stage: Callable[[Any, Any], Any], dtype: str = "int32", arch: str = "gfx942",
    place: Callable[[Any], Any] = lambda j: j,
) -> Any:  # fmt: skip
    """What the emulated kernel makes of `WORDS` and `ZEROS`."""
    result = np.zeros(NIBBLES.shape, np.float16)
    kernel = mfmadsl.build(schedule(stage, dtype, place), arch)
    mfmadsl.emulate(kernel, [WORDS.view(dtype), ZEROS, result])
    return result


def few(zero: Any, most: int) -> Any:
    return zero & tirx.const(most, "int32")


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_nibbles_of_words(arch: str, dtype: str) -> None:
    assert_same(made(lambda nibble, _: nibble, dtype, arch), NIBBLES)


@pytest.mark.parametrize("number", [7.0, -8.0, 512.0, -512.0, 513.0, 2000.0, 0.5, float("inf")])
def test_what_is_subtracted_or_added_next(number: float) -> None:
    """At once where that is exact, and rounded as it is elsewhere."""
    half = tirx.const(number, "float16")
    assert_same(made(lambda nibble, _: nibble - half), NIBBLES - np.float16(number))
    assert_same(made(lambda nibble, _: nibble + half), NIBBLES + np.float16(number))


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("most", [15, 255, 511, 512, 1023])
def test_zero_points(arch: str, most: int) -> None:
    """Of so many bits that it is exact, or of more."""
    less = (ZEROS & most).astype(np.float16)
    found = made(lambda nibble, zero: nibble - few(zero, most).astype("float16"), arch=arch)
    assert_same(found, NIBBLES - less[:, None])


@pytest.mark.parametrize("more", [1, 257, 258])
def test_zero_points_and_a_number(more: int) -> None:
    wanted = NIBBLES - ((ZEROS & 255) + more).astype(np.float16)[:, None]

    def stage(nibble: Any, zero: Any) -> Any:
        return nibble - (few(zero, 255) + tirx.const(more, "int32")).astype("float16")

    assert_same(made(stage), wanted)


def test_what_is_no_zero_point() -> None:
    """A zero that may be any integer, and sums."""
    with np.errstate(over="ignore"):
        wide = ZEROS.astype(np.float16)[:, None]
    assert_same(made(lambda nibble, zero: nibble - zero.astype("float16")), NIBBLES - wide)
    low = (ZEROS & 15).astype(np.float16)[:, None]
    assert_same(made(lambda nibble, zero: nibble + few(zero, 15).astype("float16")), NIBBLES + low)
    assert_same(made(lambda nibble, zero: few(zero, 15).astype("float16") - nibble), low - NIBBLES)


def test_a_nibble_less_itself_and_times_itself() -> None:
    """No zero has a sign, and a number that is used twice is the same."""
    assert_same(made(lambda nibble, _: nibble - nibble), NIBBLES - NIBBLES)
    assert_same(made(lambda nibble, _: (nibble - nibble * nibble) * nibble),
                (NIBBLES - NIBBLES * NIBBLES) * NIBBLES)  # fmt: skip


ORDERS: dict[str, Callable[[Any], Any]] = {
    "reversed": lambda j: 7 - j,
    "halves": lambda j: j % 2 * 4 + j // 2,
    "one": lambda j: j // 8,
    "every other": lambda j: j // 2 * 2,
    "the high ones": lambda j: j // 2 * 2 + 1,
    "from the second": lambda j: (j + 1) % 8,
}


@pytest.mark.parametrize("name", list(ORDERS))
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_order(name: str, dtype: str) -> None:
    places = np.array([ORDERS[name](j) for j in range(EACH)])
    found = made(lambda nibble, _: nibble - tirx.const(7, "float16"), dtype, place=ORDERS[name])
    assert_same(found, NIBBLES[:, places] - np.float16(7))


@pytest.mark.parametrize(("places", "more"), [(4, 1), (4, 2), (8, -4), (8, 2)])
def test_fields_that_are_no_nibbles_of_bytes(places: int, more: int) -> None:
    """Some bits up, or where a shift of the last ones is beyond the word."""
    word = te.placeholder(WORDS.shape, name="word", dtype="uint32")
    offset = te.placeholder(WORDS.shape, name="zero", dtype="int32")

    def element(i: Any, j: Any) -> Any:
        shift = (j % places * 4 + i % 2 * more) % 32
        moved = word[i] >> shift.astype("uint32") & tirx.const(15, "uint32")
        return moved.astype("float16") - (offset[i] & 15).astype("float16")

    out = te.compute((len(WORDS), EACH), element, name="out")
    sch = Schedule(te.create_prim_func([word, offset, out]))
    words, nibbles = sch.get_loops(sch.get_sblock("out"))
    block, thread = sch.split(words, [None, 64])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    sch.vectorize(nibbles)
    result = np.zeros(NIBBLES.shape, np.float16)
    mfmadsl.emulate(mfmadsl.build(sch, "gfx942"), [WORDS, ZEROS, result])
    shifts = (PLACES % places * 4 + np.arange(len(WORDS))[:, None] % 2 * more) % 32
    fields = (WORDS[:, None] >> shifts.astype(np.uint32) & 15).astype(np.float16)
    assert_same(result, fields - (ZEROS & 15).astype(np.float16)[:, None])


def test_two_take_four_instructions_with_what_is_subtracted() -> None:
    def stage(nibble: Any, zero: Any) -> Any:
        return nibble - few(zero, 15).astype("float16")

    text = mfmadsl.build(schedule(stage, "int32", lambda j: j), "gfx942").assembly
    assert text.count("v_pk_fma_f16") == EACH // 2
    assert "v_cvt" not in text
    assert text.count("v_and_or_b32") == EACH // 2
