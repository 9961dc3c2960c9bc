"""Atomics: one lane after the other, in LDS, global memory and buffers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

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


def test_every_atomic_is_tested() -> None:
    others = {"rsub", "min", "max", "wrxchg", "cmpswap", "cmpst", "pk_add", "pk_add_bf16"}
    assert set(ATOMICS) == {*INTEGERS, *others}
