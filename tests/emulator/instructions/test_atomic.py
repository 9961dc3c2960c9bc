"""Atomics: one lane after the other, in LDS, global memory and buffers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.instructions.atomic import ATOMICS
from mfmadsl.emulator.machine.bits import Array
from tests.emulator.waves import put, run, vector, wave

LANE = np.arange(64, dtype=np.uint32)
M = 2**32


def signed(x: int) -> int:
    return x - M if x >> 31 else x


# name: what is left of (old, new)
INTEGERS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "smin": lambda a, b: min(a, b, key=signed),
    "umin": min,
    "smax": lambda a, b: max(a, b, key=signed),
    "umax": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "swap": lambda a, b: b,
    "inc": lambda a, b: 0 if a >= b else a + 1,
    "dec": lambda a, b: b if a == 0 or a > b else a - 1,
}


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("wide", [False, True])
def test_global_atomics_of_lanes_that_meet(name: str, wide: bool) -> None:
    """All lanes update four places, in the order of their numbers."""
    waves = wave()
    (segment,) = waves.memory.segments
    size, dtype = (8, np.uint64) if wide else (4, np.uint32)
    values: Array = (LANE.astype(np.uint64) * 2654435761 % (2**31 if wide else M)).astype(dtype)
    waves.memory.content(segment)[: 4 * size] = np.arange(5, 9).astype(dtype).view(np.uint8)
    register = "v[4:5]" if wide else "v4"
    put(waves, {"v2": size * (LANE % 4), register: values, "s[2:3]": np.uint64(segment.address)})
    target = "v[6:7]" if wide else "v6"
    suffix = "_x2" if wide else ""
    run(waves, f"global_atomic_{name}{suffix} {target}, v2, {register}, s[2:3] sc0")
    memory = [5, 6, 7, 8]
    before = []
    for lane, value in enumerate(values.tolist()):
        before.append(memory[lane % 4])
        memory[lane % 4] = INTEGERS[name](memory[lane % 4], value) % (2**64 if wide else M)
    assert vector(waves, 6, dtype).tolist() == before
    assert waves.memory.content(segment)[: 4 * size].view(dtype).tolist() == memory


@pytest.mark.parametrize(
    ("code", "dtype"),
    [("f32", np.float32), ("f64", np.float64)],
)
def test_sums_of_floats(code: str, dtype: type) -> None:
    waves = wave()
    (segment,) = waves.memory.segments
    values: Array = (LANE * 0.25).astype(dtype)
    register = "v[4:5]" if dtype is np.float64 else "v4"
    put(waves, {"v2": 0 * LANE, register: values, "s[2:3]": np.uint64(segment.address)})
    run(waves, f"global_atomic_add_{code} v2, {register}, s[2:3]")
    assert waves.memory.content(segment)[:8].view(dtype)[0] == values.sum()


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_sums_of_packed_halves(kind: str) -> None:
    waves = wave()
    (segment,) = waves.memory.segments
    pair = np.array([1.5, 2], np.float16).view(np.uint32)[0]
    if kind == "bf16":
        pair = np.uint32(0x4000_3FC0)
    put(waves, {"v2": 0 * LANE, "v4": np.full(64, pair), "s[2:3]": np.uint64(segment.address)})
    run(waves, f"global_atomic_pk_add_{kind} v2, v4, s[2:3]")
    word = waves.memory.content(segment)[:4]
    if kind == "f16":
        assert word.view(np.float16).tolist() == [96, 128]
    else:
        assert (word.view(np.uint16).astype(np.uint32) << 16).view(np.float32).tolist() == [96, 128]


@pytest.mark.parametrize("returns", ["", "rtn_"])
def test_sums_of_bfloats_in_lds(returns: str) -> None:
    waves = wave()
    put(waves, {"v2": 0 * LANE, "v4": np.full(64, 0x4000_3FC0, np.uint32)})  # 1.5 and 2
    run(waves, f"ds_pk_add_{returns}bf16 {'v6, ' if returns else ''}v2, v4")
    run(waves, "ds_read_b32 v5, v2")
    assert vector(waves, 5)[0] == 0x4300_42C0  # 96 and 128


def test_a_value_is_exchanged_if_it_is_the_expected_one() -> None:
    waves = wave()
    (segment,) = waves.memory.segments
    put(waves, {"v2": 0 * LANE, "v4": LANE + 1, "v5": LANE, "s[2:3]": np.uint64(segment.address)})
    run(waves, "global_atomic_cmpswap v6, v2, v[4:5], s[2:3] sc0")
    assert vector(waves, 6).tolist() == list(range(64))
    run(waves, "ds_cmpst_rtn_b32 v6, v2, v5, v4")  # here the expected value comes first
    assert vector(waves, 6).tolist() == list(range(64))


@pytest.mark.parametrize(
    ("name", "left"),
    [("inc", {4: 5, 5: 0, 6: 0}), ("dec", {0: 5, 1: 0, 5: 4, 6: 5})],
)
def test_counters_begin_again_at_their_limits(name: str, left: dict[int, int]) -> None:
    waves = wave()
    for old, new in left.items():
        put(waves, {"v2": 0 * LANE, "v4": 0 * LANE + 5, "v5": 0 * LANE + old})
        put(waves, {"exec": np.array(1, np.uint64)})
        run(waves, "ds_write_b32 v2, v5")
        run(waves, f"ds_{name}_u32 v2, v4")
        run(waves, "ds_read_b32 v6, v2")
        assert vector(waves, 6)[0] == new


def test_lds_atomics() -> None:
    waves = wave()
    put(waves, {"v2": 0 * LANE, "v4": LANE, "v5": LANE.astype(np.float32)})
    run(waves, "ds_add_u32 v2, v4 offset:8")
    run(waves, "ds_add_f32 v2, v5")
    run(waves, "ds_rsub_u32 v2, v4 offset:16")
    run(waves, "ds_wrxchg_rtn_b32 v7, v2, v4 offset:20")
    for name in ("max_u32", "min_i32", "max_i32", "min_u32"):
        run(waves, f"ds_{name} v2, v4 offset:24")
    run(waves, "ds_read_b32 v6, v2 offset:8")
    assert vector(waves, 6)[0] == 63 * 32
    run(waves, "ds_read_b32 v6, v2")
    assert vector(waves, 6, np.float32)[0] == 63 * 32
    assert vector(waves, 7).tolist() == [0, *range(63)]


def test_only_active_lanes_take_part() -> None:
    waves = wave()
    put(waves, {"v2": 0 * LANE, "v4": LANE + 1, "exec": np.array(0b101, np.uint64)})
    run(waves, "ds_add_u32 v2, v4")
    run(waves, "ds_read_b32 v6, v2")
    assert vector(waves, 6)[0] == 4


def test_some_bits_are_replaced() -> None:
    waves = wave()
    put(waves, {"v2": 0 * LANE, "v4": 0 * LANE + 0xFF, "v5": LANE, "v7": 0 * LANE + 0xABCD})
    run(waves, "ds_write_b32 v2, v7")
    run(waves, "ds_mskor_rtn_b32 v6, v2, v4, v5")
    expected = [0xABCD, *(0xAB00 | lane for lane in range(63))]
    assert vector(waves, 6).tolist() == expected


def test_a_counter_wraps() -> None:
    """By 5, and where it would be less than nothing, by 100 the other way."""
    waves = wave()
    put(waves, {"v2": 0 * LANE, "v4": 0 * LANE + 5, "v5": 0 * LANE + 100})
    run(waves, "ds_wrap_rtn_b32 v6, v2, v4, v5")
    value, expected = 0, []
    for _ in range(64):
        expected.append(value)
        value = value - 5 if value >= 5 else value + 100
    assert vector(waves, 6).tolist() == expected


def test_words_that_are_marked_are_exchanged() -> None:
    waves = wave(lds=1024)
    marked = [0x8000_0007, 7, 0x8000_0009, 9]
    low, high = (np.array([marked[(lane >> s) % 2 + 2 * s] for lane in range(64)], np.uint32)
                 for s in (0, 1))  # fmt: skip
    put(waves, {"v2": 8 * LANE, "v4": low, "v5": high, "v[6:7]": np.full(64, 1 << 32 | 2, "u8")})
    run(waves, "ds_write_b64 v2, v[6:7]")
    run(waves, "ds_condxchg32_rtn_b64 v[8:9], v2, v[4:5]")
    run(waves, "ds_read_b64 v[10:11], v2")
    assert (vector(waves, 8, np.uint64) == 1 << 32 | 2).all()
    assert (vector(waves, 10) == np.where(LANE % 2, 2, 7)).all()
    assert (vector(waves, 11) == np.where(LANE // 2 % 2, 1, 9)).all()


def test_two_places_are_exchanged() -> None:
    waves = wave(lds=2048)
    put(waves, {"v2": 4 * LANE, "v4": LANE + 100, "v5": LANE + 200, "v6": LANE, "v7": LANE + 500})
    run(waves, "ds_write2st64_b32 v2, v6, v7 offset0:1 offset1:3")
    run(waves, "ds_wrxchg2st64_rtn_b32 v[8:9], v2, v4, v5 offset0:1 offset1:3")
    run(waves, "ds_read2st64_b32 v[10:11], v2 offset0:1 offset1:3")
    found = [vector(waves, register) for register in (8, 9, 10, 11)]
    assert all((f == LANE + more).all() for f, more in zip(found, (0, 500, 100, 200), strict=True))


@pytest.mark.parametrize(("name", "sign"), [("append", 1), ("consume", -1)])
def test_a_counter_of_lanes(name: str, sign: int) -> None:
    """At the upper half of M0 and the offset; each wave gets what the one before it left."""
    waves = wave(2)
    put(waves, {"v2": 0 * LANE + 24, "v4": 0 * LANE + 1000, "m0": np.uint32(16 << 16)})
    run(waves, "ds_write_b32 v2, v4")
    put(waves, {"exec": np.array(0b10110, np.uint64)})
    run(waves, f"ds_{name} v6 offset:8")
    assert waves.vector[6, 0, [0, 1, 2, 3, 4]].tolist() == [0, 1000, 1000, 0, 1000]
    assert waves.vector[6, 1, 1] == 1000 + sign * 3
    run(waves, "ds_read_b32 v8, v2")
    assert waves.vector[8, 1, 1] == 1000 + sign * 6


def test_words_of_the_lanes_lie_side_by_side() -> None:
    waves = wave(lds=512)
    put(waves, {"v4": LANE + 7, "m0": np.uint32(128), "v2": 4 * LANE})
    run(waves, "ds_write_addtid_b32 v4 offset:16")
    run(waves, "ds_read_b32 v6, v2 offset:144")
    run(waves, "ds_read_addtid_b32 v8 offset:16")
    assert (vector(waves, 6) == LANE + 7).all()
    assert (vector(waves, 8) == LANE + 7).all()


def test_words_of_the_lds_are_combined() -> None:
    """Each with the one behind it, in the order of the lanes."""
    waves = wave(lds=512)
    put(waves, {"v2": 4 * LANE, "v4": LANE * LANE})
    run(waves, "ds_write_b32 v2, v4")
    put(waves, {"exec": np.array(2**63 - 1, np.uint64)})
    run(waves, "ds_add_src2_u32 v2 offset:1", "gfx908")
    run(waves, "ds_read_b32 v6, v2")
    assert (vector(waves, 6)[:63] == (LANE**2 + (LANE + 1) ** 2)[:63]).all()
    put(waves, {"v2": 4 * LANE + 4})
    run(waves, "ds_write_src2_b32 v2 offset:0x7fff", "gfx908")  # one word before
    run(waves, "ds_read_b32 v6, v2")
    assert (vector(waves, 6)[:63] == 1).all()
    with pytest.raises(EmulationError, match="the offset is one of 15 bits"):
        run(waves, "ds_add_src2_u32 v2 offset:0x8000", "gfx908")


def test_every_atomic_is_tested() -> None:
    others = {"rsub", "min", "max", "wrxchg", "cmpswap", "cmpst", "pk_add", "pk_add_bf16"}
    others |= {"mskor", "wrap", "condxchg32"}
    assert set(ATOMICS) == {*INTEGERS, *others}
