"""Buffer instructions: bounds, offsets, and loads straight to LDS."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator import emulate
from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.machine.wave import Waves
from tests.emulator.waves import kernel, put, run, vector, wave

LANE = np.arange(64, dtype=np.uint32)
WORDS = np.arange(1024, dtype=np.uint32) * 3 + 1


def with_buffer(size: int, stride: int = 0) -> Waves:
    """A wave whose s[4:7] describe the first bytes of memory, which hold `WORDS`."""
    waves = wave(lds=8192)
    (segment,) = waves.memory.segments
    waves.memory.content(segment)[:] = WORDS.view(np.uint8)
    descriptor = [segment.address & 0xFFFFFFFF, segment.address >> 32 | stride << 16, size, 0x27000]
    put(waves, {f"s{4 + i}": np.uint32(word) for i, word in enumerate(descriptor)})
    put(waves, {"v1": LANE * 4, "s2": np.uint32(8)})
    return waves


def test_offsets_add_up() -> None:
    waves = with_buffer(4096)
    run(waves, "buffer_load_dword v0, v1, s[4:7], s2 offen offset:16")
    assert (vector(waves, 0) == WORDS[LANE + 6]).all()
    run(waves, "buffer_load_dword v0, off, s[4:7], 0 offset:40")
    assert (vector(waves, 0) == WORDS[10]).all()


def test_out_of_bounds_loads_give_zero_word_by_word() -> None:
    waves = with_buffer(4 * 66)
    run(waves, "buffer_load_dwordx4 v[8:11], v1, s[4:7], 0 offen")
    for word in range(4):
        expected = np.where(LANE + word < 66, WORDS[LANE + word], 0)
        assert (vector(waves, 8 + word) == expected).all()


def test_out_of_bounds_stores_are_dropped() -> None:
    waves = with_buffer(4 * 60)
    put(waves, {"v0": LANE + 10_000})
    run(waves, "buffer_store_dword v0, v1, s[4:7], 0 offen")
    stored = waves.memory.content(waves.memory.segments[0]).view(np.uint32)
    assert (stored[:64] == np.where(LANE < 60, LANE + 10_000, WORDS[:64])).all()


def test_records_are_counted_where_there_is_an_index() -> None:
    waves = with_buffer(20, stride=12)
    put(waves, {"v1": LANE})
    run(waves, "buffer_load_dword v0, v1, s[4:7], 0 idxen offset:4")
    assert (vector(waves, 0) == np.where(LANE < 20, WORDS[3 * LANE + 1], 0)).all()


def test_without_a_stride_the_size_counts_bytes_beside_an_index_too() -> None:
    waves = with_buffer(8)
    put(waves, {"v1": LANE})
    run(waves, "buffer_load_dword v0, v1, s[4:7], 0 idxen offset:4")
    assert (vector(waves, 0) == WORDS[1]).all()


def test_scratch_memory_through_its_descriptor_is_at_an_offset() -> None:
    """Each lane's own: two words of a lane lie apart, also where registers say the offset."""
    code = """
	v_mov_b32_e32 v1, 5
	v_mov_b32_e32 v2, v0
	v_mov_b32_e32 v3, 4
	buffer_store_dword v1, off, s[0:3], 0
	buffer_store_dword v2, off, s[0:3], 0 offset:4
	buffer_load_dword v6, off, s[0:3], 0
	buffer_load_dword v7, v3, s[0:3], 0 offen
	s_load_dwordx2 s[6:7], s[4:5], 0x0
	v_lshlrev_b32_e32 v8, 2, v0
	s_waitcnt vmcnt(0) lgkmcnt(0)
	v_lshl_add_u32 v6, v7, 8, v6
	global_store_dword v8, v6, s[6:7]"""
    text = kernel(code).replace(
        ".amdhsa_user_sgpr_kernarg_segment_ptr 1",
        ".amdhsa_user_sgpr_private_segment_buffer 1\n\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1"
        "\n\t\t.amdhsa_private_segment_fixed_size 16",
    )
    result = np.zeros(64, np.uint32)
    emulate(text, [result], (1,), (64,))
    assert (result == LANE * 256 + 5).all()


@pytest.mark.parametrize("by", [1, 2])
def test_what_goes_straight_to_lds_is_aligned_to_words(by: int) -> None:
    waves = with_buffer(4096)
    address = waves.memory.segments[0].address
    put(waves, {"m0": np.uint32(0), "s[8:9]": np.uint64(address), "v1": LANE * 4 + by})
    for code in ("global_load_lds_dword v1, s[8:9]", "buffer_load_dword v1, s[4:7], 0 offen lds"):
        with pytest.raises(EmulationError, match="is not aligned to 4"):
            run(waves, code)


def test_a_buffer_larger_than_its_memory_is_no_excuse() -> None:
    waves = with_buffer(0x7FFFFFFE)
    put(waves, {"v1": LANE * 4 + 4000})
    with pytest.raises(EmulationError, match=r"`data`, which has 4096 bytes \(.*lane 24"):
        run(waves, "buffer_load_dword v0, v1, s[4:7], 0 offen")


def test_a_swizzled_buffer_is_not_emulated() -> None:
    waves = with_buffer(4096)
    put(waves, {"s5": np.uint32(waves.scalar[5, 0] | 1 << 31)})
    with pytest.raises(EmulationError, match="swizzled, and that is not emulated"):
        run(waves, "buffer_load_dword v0, v1, s[4:7], 0 offen")


@pytest.mark.parametrize(("suffix", "words"), [("", 1), ("x3", 3), ("x4", 4)])
def test_straight_to_lds_lane_by_lane(suffix: str, words: int) -> None:
    """Zeros where a lane is outside of the buffer."""
    waves = with_buffer(4 * 40)
    waves.lds.store_words(4 * np.arange(2048), np.full((1, 2048), 99, np.uint32))
    put(waves, {"m0": np.uint32(256), "v1": LANE * 4 * words})
    run(waves, f"buffer_load_dword{suffix} v1, s[4:7], 0 offen offset:4 lds", "gfx950")
    found = waves.lds.load_words(256 + 4 + 4 * np.arange(64 * words), 1)[0].reshape(64, words)
    for lane in range(64):
        inside = 4 * words * (lane + 1) + 4 <= 160
        expected = WORDS[words * lane + 1 :][:words] if inside else np.zeros(words)
        assert (found[lane] == expected).all()


@pytest.mark.parametrize("offset", [8, -8])
def test_global_memory_straight_to_lds(offset: int) -> None:
    """The offset, which may be negative, is that of both places."""
    waves = with_buffer(0)
    address = waves.memory.segments[0].address
    put(waves, {"m0": np.uint32(64), "s[8:9]": np.uint64(address), "v1": (65 - LANE) * 4})
    run(waves, f"global_load_lds_dword v1, s[8:9] offset:{offset}")
    found = waves.lds.load_words(64 + offset + 4 * np.arange(64), 1)[0]
    assert (found == WORDS[65 + offset // 4 - LANE]).all()


def test_scalar_loads_through_a_buffer() -> None:
    waves = with_buffer(12)
    for offset in (4, 5, 7):  # the two lowest bits are not looked at
        run(waves, f"s_buffer_load_dwordx4 s[8:11], s[4:7], {offset:#x}")
        assert waves.scalar[8:12, 0].tolist() == [*WORDS[1:3].tolist(), 0, 0]
