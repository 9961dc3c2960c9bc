"""Loads and stores: widths, offsets, the two of a pair, bounds, alignment, EXEC."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.machine.aperture import HARDWARE_WORDS
from mfmadsl.emulator.machine.bits import Array
from mfmadsl.emulator.machine.memory import OwnedMemory
from mfmadsl.emulator.machine.wave import Waves
from tests.emulator.waves import put, run, vector, wave

LANES = np.arange(64, dtype=np.uint32)


def with_memory() -> Waves:
    """A wave with bytes 0, 1, 2 ... in memory, their addresses by lane in v[0:1]."""
    waves = wave()
    (segment,) = waves.memory.segments
    waves.memory.content(segment)[:] = np.arange(4096) % 251
    put(waves, {"v[0:1]": np.uint64(segment.address) + 16 * LANES.astype(np.uint64)})
    put(waves, {"s[2:3]": np.uint64(segment.address), "v2": 16 * LANES})
    return waves


def content(waves: Waves) -> Array:
    return waves.memory.content(waves.memory.segments[0])


@pytest.mark.parametrize(("suffix", "words"), [("", 1), ("x2", 2), ("x3", 3), ("x4", 4)])
def test_global_words(suffix: str, words: int) -> None:
    waves = with_memory()
    run(waves, f"global_load_dword{suffix} v[8:{7 + words}], v[0:1], off offset:4")
    expected = content(waves).copy().view(np.uint32)
    for word in range(words):
        assert (vector(waves, 8 + word) == expected[4 * LANES + 1 + word][: len(LANES)]).all()
    run(waves, f"global_store_dword{suffix} v2, v[8:{7 + words}], s[2:3] offset:2048")
    stored = content(waves).view(np.uint32)[512:]
    for word in range(words):
        assert (stored[4 * LANES[:32] + word] == vector(waves, 8 + word)[:32]).all()


def test_narrow_loads_extend_or_fill_a_half() -> None:
    waves = with_memory()
    content(waves)[:4] = [0x80, 0xFF, 0x34, 0x12]
    put(waves, {"v8": np.full(64, 0xAAAABBBB, np.uint32)})
    for name, expected in {
        "ubyte": 0x80,
        "sbyte": 0xFFFFFF80,
        "ushort": 0xFF80,
        "sshort": 0xFFFFFF80,
        "short_d16": 0xAAAAFF80,
        "short_d16_hi": 0xFF80BBBB,
    }.items():
        put(waves, {"v8": np.full(64, 0xAAAABBBB, np.uint32)})
        run(waves, f"global_load_{name} v8, v[0:1], off")
        assert vector(waves, 8)[0] == expected, name


def test_narrow_stores_change_nothing_else() -> None:
    waves = with_memory()
    before = content(waves).copy()
    put(waves, {"v8": np.full(64, 0x11223344, np.uint32)})
    run(waves, "global_store_short_d16_hi v2, v8, s[2:3] offset:2")
    run(waves, "global_store_byte v2, v8, s[2:3]")
    before.reshape(-1, 16)[:64, 2:4] = [0x22, 0x11]
    before.reshape(-1, 16)[:64, 0] = 0x44
    assert (content(waves) == before).all()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("global_load_dword v8, v[0:1], off offset:-4", "4 bytes before `data`"),
        ("global_load_dwordx4 v[8:11], v[0:1], off offset:3088", r"`data`, which has 4096 bytes"),
        ("global_load_ubyte v8, v[0:1], off offset:3088", r"offset 4096 of `data`, which has 4096"),
        ("global_atomic_add v[0:1], v8, off offset:2", "not aligned to 4"),
        ("global_atomic_add_x2 v[0:1], v[8:9], off offset:4", "not aligned to 8"),
        ("ds_read_b32 v8, v2 offset:256", "LDS address 256, but it has 256.*lane 0"),
        ("scratch_load_dword v8, v2, off", "scratch address 64, but it has 64.*lane 4"),
    ],
)
def test_accesses_that_the_chip_would_not_survive(code: str, message: str) -> None:
    with pytest.raises(EmulationError, match=message):
        run(with_memory(), code)


def test_words_of_scratch_memory_may_lie_anywhere() -> None:
    waves = with_memory()
    put(waves, {"v3": 0 * LANES + 4, "v[8:9]": LANES.astype(np.uint64) * 3 + (7 << 32)})
    run(waves, "scratch_store_dwordx2 v3, v[8:9], off")
    run(waves, "scratch_load_dwordx2 v[10:11], v3, off")
    assert (vector(waves, 10) == LANES * 3).all()
    assert (vector(waves, 11) == 7).all()
    put(waves, {"v3": 0 * LANES + 6})
    run(waves, "scratch_load_dwordx2 v[10:11], v3, off")
    assert (vector(waves, 10) == LANES * 3 >> 16 | 7 << 16).all()


def test_flat_addresses_lead_to_global_memory_the_lds_and_scratch_memory() -> None:
    """Lane by lane, by the aperture in the high word: those of Linux."""
    waves = with_memory()
    (segment,) = waves.memory.segments
    place = 4 * (LANES % 16).astype(np.int64)
    shared, private = (1 << 48) + place, (2 << 48) + place
    ours = segment.address + place
    addresses = np.choose(LANES % 3, [ours, shared, private]).astype(np.uint64)
    put(waves, {"v[4:5]": addresses, "v6": (LANES + 1000).astype(np.uint32)})
    run(waves, "flat_store_dword v[4:5], v6")
    run(waves, "flat_load_dword v7, v[4:5]")
    put(waves, {"v8": place.astype(np.uint32)})
    run(waves, "scratch_load_dword v9, v8, off")
    run(waves, "ds_read_b32 v10, v8")
    last = {place // 4: lane for lane, place in enumerate(place.tolist()) if lane % 3 == 1}
    of_scratch = LANES % 3 == 2
    assert (vector(waves, 7)[of_scratch] == LANES[of_scratch] + 1000).all()
    assert (vector(waves, 9)[of_scratch] == LANES[of_scratch] + 1000).all()
    assert all(vector(waves, 10)[word] == lane + 1000 for word, lane in last.items())
    put(waves, {"v11": np.ones(64, np.uint32)})
    run(waves, "flat_atomic_add v12, v[4:5], v11 sc0")
    assert (vector(waves, 12)[of_scratch] == LANES[of_scratch] + 1000).all()
    run(waves, "scratch_load_dword v9, v8, off")
    assert (vector(waves, 9)[of_scratch] == LANES[of_scratch] + 1001).all()


@pytest.mark.parametrize(("name", "high"), [("shared", 0x10000), ("private", 0x20000)])
def test_apertures_are_in_registers(name: str, high: int) -> None:
    waves = with_memory()
    for register, words in HARDWARE_WORDS.items():
        waves.scalar[register : register + 2] = np.array(words)[:, None]
    run(waves, f"s_mov_b64 s[4:5], src_{name}_base")
    run(waves, f"s_mov_b64 s[6:7], src_{name}_limit")
    run(waves, "s_getreg_b32 s8, hwreg(HW_REG_SH_MEM_BASES)")
    assert waves.scalar[4:8, 0].tolist() == [0, high, 0xFFFF_FFFF, high]
    assert waves.scalar[8, 0] == 0x0001_0002
    with pytest.raises(EmulationError, match="it is a source only"):
        run(waves, f"s_mov_b64 src_{name}_base, 0")


def test_scratch_memory_goes_straight_to_the_lds() -> None:
    waves = with_memory()
    put(waves, {"v3": 0 * LANES + 8, "v4": LANES + 5, "m0": np.uint32(16), "v2": 4 * LANES})
    waves.lds = OwnedMemory("LDS", 1, 512)
    run(waves, "scratch_store_dword v3, v4, off offset:4")
    run(waves, "scratch_load_lds_dword v3, off offset:4")
    run(waves, "ds_read_b32 v6, v2 offset:20")
    assert (vector(waves, 6) == LANES + 5).all()


def test_flat_accesses_of_several_words_are_those_of_global_memory() -> None:
    waves = with_memory()
    run(waves, "flat_load_dwordx4 v[8:11], v[0:1] offset:4")
    expected = content(waves).copy().view(np.uint32)
    for word in range(4):
        assert (vector(waves, 8 + word) == expected[4 * LANES + 1 + word]).all()


def test_an_address_is_told_by_the_argument_before_it() -> None:
    far = 1 << 20
    put(waves := with_memory(), {"v2": 0 * LANES + far})
    with pytest.raises(EmulationError, match=f"offset {far} of `data`, which has 4096 bytes"):
        run(waves, "global_load_dword v8, v2, s[2:3]")


@pytest.mark.parametrize("by", [1, 2, 3])
def test_global_memory_is_accessed_at_any_byte(by: int) -> None:
    waves = with_memory()
    before = content(waves).copy()
    run(waves, f"global_load_dwordx2 v[8:9], v[0:1], off offset:{by}")
    run(waves, f"global_load_ushort v10, v[0:1], off offset:{by}")
    rows = before.reshape(-1, 16)[:64]
    wide = np.ascontiguousarray(rows[:, by : by + 8]).view(np.uint32)
    np.testing.assert_array_equal(vector(waves, 8), wide[:, 0])
    np.testing.assert_array_equal(vector(waves, 9), wide[:, 1])
    narrow = np.ascontiguousarray(rows[:, by : by + 2]).view(np.uint16)[:, 0]
    np.testing.assert_array_equal(vector(waves, 10), narrow)
    run(waves, f"global_store_dwordx2 v[0:1], v[8:9], off offset:{by + 5}")
    run(waves, f"global_store_short v[0:1], v10, off offset:{by}")
    rows[:, by + 5 : by + 13] = wide.view(np.uint8)
    np.testing.assert_array_equal(content(waves), before)


@pytest.mark.parametrize(
    ("code", "size"),
    [("ds_add_u32 v2, v8 offset:2", 4), ("ds_add_rtn_u64 v[8:9], v2, v[8:9] offset:4", 8)],
)
def test_atomics_of_the_lds_are_aligned(code: str, size: int) -> None:
    waves = wave(lds=64)
    put(waves, {"v2": 0 * LANES})
    with pytest.raises(EmulationError, match=f"not aligned to {size}"):
        run(waves, code)


@pytest.mark.parametrize("by", [1, 2, 3, 4])
@pytest.mark.parametrize(("width", "size"), [("b32", 4), ("b64", 8), ("b96", 12), ("b128", 16)])
def test_lds_is_accessed_at_any_byte(width: str, size: int, by: int) -> None:
    waves = wave(lds=64 * 20 + 16)
    before = np.random.default_rng(by).integers(0, 256, 64 * 20, np.uint8)
    everywhere = np.arange(0, before.size, 4)
    waves.lds.store_words(everywhere, before.view(np.uint32)[None])
    put(waves, {"v2": 20 * LANES})
    last = 8 + size // 4 - 1
    run(waves, f"ds_read_{width} v[8:{last}], v2 offset:{by}")
    rows = before.reshape(64, 20)
    words = np.ascontiguousarray(np.hstack([rows, np.roll(rows, -1, 0)])[:, by : by + size])
    for word, expected in enumerate(words.view(np.uint32).T):
        np.testing.assert_array_equal(vector(waves, 8 + word)[:63], expected[:63])
    run(waves, f"ds_write_{width} v2, v[8:{last}] offset:{by - 1}")
    if by - 1 + size <= 20:
        rows[:, by - 1 : by - 1 + size] = words
        found = waves.lds.load_words(everywhere, 1)[0]
        np.testing.assert_array_equal(found[: 63 * 5], before.view(np.uint32)[: 63 * 5])


@pytest.mark.parametrize(("kind", "size"), [("b32", 4), ("b64", 8)])
def test_two_of_the_lds_at_any_byte(kind: str, size: int) -> None:
    waves = wave(lds=64 * 24 + 8)
    before = np.random.default_rng(size).integers(0, 256, 64 * 24, np.uint8)
    waves.lds.store_words(np.arange(0, before.size, 4), before.view(np.uint32)[None])
    put(waves, {"v2": 24 * LANES + 2})
    words = size // 4
    run(waves, f"ds_read2_{kind} v[8:{7 + 2 * words}], v2 offset1:1")
    both = np.ascontiguousarray(before.reshape(64, 24)[:, 2 : 2 + 2 * size]).view(np.uint32)
    for word, expected in enumerate(both.T):
        np.testing.assert_array_equal(vector(waves, 8 + word), expected)


def test_lanes_that_are_off_access_nothing() -> None:
    waves = with_memory()
    put(waves, {"exec": np.array(1, np.uint64), "v8": np.full(64, 5, np.uint32)})
    run(waves, "global_load_dword v8, v[0:1], off offset:4080")
    assert vector(waves, 8)[1:].tolist() == [5] * 63
    put(waves, {"v9": 8 * LANES})
    run(waves, "ds_write_b32 v9, v8 offset:252")


def test_lds_words_and_pairs() -> None:
    waves = wave(lds=4096)
    put(waves, {"v0": 8 * LANES, "v1": LANES, "v2": 100 + LANES, "v5": 16 * LANES})
    run(waves, "ds_write2_b32 v0, v1, v2 offset1:1")
    run(waves, "ds_read_b64 v[8:9], v0")
    assert (vector(waves, 8) == LANES).all()
    assert (vector(waves, 9) == 100 + LANES).all()
    put(waves, {"v0": 8 * LANES % 256})
    run(waves, "ds_read2_b64 v[8:11], v0 offset0:1 offset1:3")
    assert (vector(waves, 8) == (LANES % 32) + 1).all()
    assert (vector(waves, 11) == 103 + LANES % 32).all()
    put(waves, {"v0": 4 * LANES, "v3": 7 * LANES})
    run(waves, "ds_write2st64_b32 v0, v3, v3 offset0:2 offset1:4")
    run(waves, "ds_read_b128 v[12:15], v5 offset:1024")
    assert (vector(waves, 14)[:16] == 7 * (4 * LANES[:16] + 2)).all()


def test_a_pair_may_overwrite_its_own_address() -> None:
    waves = wave(lds=1024)
    put(waves, {"v0": 8 * LANES, "v2": LANES, "v3": 50 + LANES})
    run(waves, "ds_write2_b32 v0, v2, v3 offset1:1")
    run(waves, "ds_read2_b32 v[0:1], v0 offset1:1")
    assert (vector(waves, 1) == 50 + LANES).all()


def test_narrow_lds_accesses() -> None:
    waves = wave()
    put(waves, {"v0": 2 * LANES, "v1": 0x10000 + LANES, "v8": np.full(64, 9, np.uint32)})
    run(waves, "ds_write_b16 v0, v1")
    run(waves, "ds_write_b16_d16_hi v0, v1 offset:128")
    run(waves, "ds_read_u16 v2, v0")
    run(waves, "ds_read_u16_d16_hi v8, v0 offset:128")
    assert (vector(waves, 2) == LANES).all()
    assert (vector(waves, 8) == 0x10009).all()


def test_scratch_memory_is_each_lanes_own() -> None:
    waves = wave(2)
    put(waves, {"v1": LANES, "s4": np.uint32(8)})
    run(waves, "scratch_store_dword off, v1, s4 offset:4")
    run(waves, "scratch_load_dword v2, off, off offset:12")
    assert (waves.vector[2] == LANES).all()
    run(waves, "scratch_load_dword v3, off, off offset:8")
    assert not waves.vector[3].any()


@pytest.mark.parametrize(
    ("offset", "place"),
    [("-8", -8), ("0x10", 16), ("s8", 24), ("s8 offset:-16", 8), ("s8 offset:13", 36),
     ("s8 offset:-4 glc", 20)],
)  # fmt: skip
def test_scalar_offsets_have_a_sign(offset: str, place: int) -> None:
    """Of 21 bits, beside a register too; the lowest two of a sum do not count."""
    waves = with_memory()
    words = content(waves).view(np.uint32)
    put(waves, {"s[4:5]": np.uint64(waves.memory.segments[0].address + 64), "s8": np.uint32(24)})
    run(waves, f"s_load_dwordx2 s[6:7], s[4:5], {offset}")
    assert waves.scalar[6:8, 0].tolist() == words[(64 + place) // 4 :][:2].tolist()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("s_load_dword s6, s[4:5], 0x100000", "the offset is from -1048576 to 1048575"),
        ("s_load_dword s6, s[4:5], s8 offset:-1048577", "the offset is from -1048576"),
        ("s_buffer_load_dword s6, s[4:7], -4", "the offset is from 0 to 1048575"),
        ("s_load_dword s6, s[4:5], 1.0", "the offset is a number"),
        ("s_load_dword s6, s[4:5], 4 offset:4", "two constant offsets"),
    ],
)
def test_scalar_offsets_that_there_are_not(code: str, message: str) -> None:
    with pytest.raises(EmulationError, match=message):
        run(wave(), code)
