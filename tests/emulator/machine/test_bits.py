"""Bits of registers as numbers, and back."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator.machine.bits import (
    beside,
    codes_of,
    pair_of_halves,
    pair_of_words,
    sign_extended,
    words_of,
    words_of_codes,
)

WORDS = np.random.default_rng(3).integers(0, 1 << 32, (5, 64, 3), np.uint32)


@pytest.mark.parametrize("bits", [4, 6, 8, 16])
def test_codes_lie_side_by_side_the_lowest_first(bits: int) -> None:
    codes = codes_of(WORDS, bits)
    assert codes.shape == (5, 64, 96 // bits)
    for lane in (0, 17):
        whole = sum(int(word) << 32 * i for i, word in enumerate(WORDS[2, lane]))
        expected = [whole >> bits * i & (1 << bits) - 1 for i in range(96 // bits)]
        assert codes[2, lane].tolist() == expected
    np.testing.assert_array_equal(words_of_codes(codes, bits), WORDS)


def test_pairs_have_the_first_one_below() -> None:
    low, high = np.array([1.5], np.float32), np.array([0x80000001], np.uint32)
    assert pair_of_words(low, high).tolist() == [0x80000001_3FC00000]
    assert [word.tolist() for word in words_of(pair_of_words(low, high))] == [
        [0x3FC00000], [0x80000001],
    ]  # fmt: skip
    assert pair_of_halves(np.array([-1], np.int16), np.array([1], np.float16)).tolist() == [
        0x3C00FFFF
    ]


def test_the_other_half_stays() -> None:
    old, half = np.array([0xAAAABBBB], np.uint32), np.array([0x1234], np.uint32)
    assert beside(old, half, "hi").tolist() == [0x1234BBBB]
    assert beside(old, half, "lo").tolist() == [0xAAAA1234]


def test_signs_are_extended() -> None:
    words = np.array([0x7F, 0x80, 0xFF], np.uint32)
    assert sign_extended(words, 8).tolist() == [0x7F, 0xFFFFFF80, 0xFFFFFFFF]
