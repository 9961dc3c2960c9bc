"""LDS beyond plain loads and stores: transposing reads, permutations, atomics."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.machine.wave import Waves
from tests.emulator.waves import put, run, vector, wave

LANE = np.arange(64, dtype=np.uint32)


def codes_in_lds(bits: int, words: int) -> tuple[Waves, np.ndarray]:
    """A wave whose lanes point at their own pieces of LDS, and the codes there by lane."""
    generator = np.random.default_rng(bits)
    per_lane = 32 * words // bits
    codes = generator.integers(0, 2**bits, (64, per_lane), np.uint16)
    flat = (codes[..., None] >> np.arange(bits) & 1).astype(np.uint8).reshape(64, -1)
    packed = np.packbits(flat, axis=1, bitorder="little").view(np.uint32)
    waves = wave(lds=64 * 16)
    for word in range(words):
        offsets = (LANE * 16 + 4 * word).astype(np.int64)
        waves.lds.store_words(offsets, packed[None, :, word])
    put(waves, {"v8": LANE * 16})
    return waves, codes


@pytest.mark.parametrize(("bits", "words"), [(16, 2), (8, 2), (4, 2), (6, 3)])
def test_blocks_of_sixteen_lanes_are_transposed(bits: int, words: int) -> None:
    """Rows of 16 elements lie in one lane or in several neighbours; lane i gets column i."""
    waves, codes = codes_in_lds(bits, words)
    run(waves, f"ds_read_b{32 * words}_tr_b{bits} v[0:{words - 1}], v8", "gfx950")
    found = np.stack([vector(waves, i) for i in range(words)], axis=1)
    unpacked = np.unpackbits(np.ascontiguousarray(found).view(np.uint8), axis=1, bitorder="little")
    got = unpacked.reshape(64, -1, bits) @ (1 << np.arange(bits))
    per_lane = codes.shape[1]
    lanes_per_row = 16 // per_lane
    for lane in range(64):
        block, column = lane // 16 * 16, lane % 16
        for row in range(per_lane):
            holder = block + row * lanes_per_row + column // per_lane
            assert got[lane, row] == codes[holder, column % per_lane]


def test_all_lanes_must_take_part_in_a_transposition() -> None:
    waves, _ = codes_in_lds(16, 2)
    put(waves, {"exec": np.array(1, np.uint64)})
    with pytest.raises(EmulationError, match="EXEC must be full"):
        run(waves, "ds_read_b64_tr_b16 v[0:1], v8", "gfx950")


@pytest.mark.parametrize(("name", "size"), [("b64_tr_b16", 8), ("b96_tr_b6", 16)])
def test_what_is_transposed_is_aligned(name: str, size: int) -> None:
    waves, _ = codes_in_lds(16, 2)
    last = {8: 1, 16: 2}[size]
    with pytest.raises(EmulationError, match=f"not aligned to {size}"):
        run(waves, f"ds_read_{name} v[0:{last}], v8 offset:4", "gfx950")


def test_lanes_fetch_from_others() -> None:
    waves = wave()
    put(waves, {"v1": 4 * ((LANE * 7) % 64), "v2": LANE + 100})
    run(waves, "ds_bpermute_b32 v0, v1, v2")
    assert (vector(waves, 0) == (LANE * 7) % 64 + 100).all()
    put(waves, {"exec": np.array(0xFF, np.uint64)})
    run(waves, "ds_bpermute_b32 v0, v1, v2 offset:4")
    assert vector(waves, 0)[:8].tolist() == [101 if i == 0 else 0 for i in range(8)]


def test_lanes_send_to_others_and_the_last_stays() -> None:
    waves = wave()
    put(waves, {"v1": 4 * (LANE // 2), "v2": LANE})
    run(waves, "ds_permute_b32 v0, v1, v2")
    assert vector(waves, 0).tolist() == [2 * i + 1 for i in range(32)] + [0] * 32


@pytest.mark.parametrize(
    ("offset", "source"),
    [
        (0x8000 | 0b00011011, lambda i: i // 4 * 4 + 3 - i % 4),  # quads, reversed
        (0x041F, lambda i: i ^ 1),  # lanes change places with their neighbours
        (0x0010 | 0x0 << 5, lambda i: i // 32 * 32 + (i & 16)),  # the first of each half
    ],
)
def test_swizzles(offset: int, source: object) -> None:
    waves = wave()
    put(waves, {"v1": LANE})
    run(waves, f"ds_swizzle_b32 v0, v1 offset:{offset}")
    assert vector(waves, 0).tolist() == [source(i) for i in range(64)]  # type: ignore[operator]


def test_permutations_are_of_accumulation_registers_too() -> None:
    waves = wave()
    put(waves, {"v1": 4 * (LANE ^ 5), "a4": LANE + 300})
    run(waves, "ds_bpermute_b32 a2, v1, a4", "gfx90a")
    assert (waves.accumulation[2, 0] == (LANE ^ 5) + 300).all()
    put(waves, {"v3": LANE + 7})
    run(waves, "ds_swizzle_b32 a2, v3 offset:swizzle(SWAP,1)", "gfx90a")
    assert (waves.accumulation[2, 0] == (LANE ^ 1) + 7).all()
