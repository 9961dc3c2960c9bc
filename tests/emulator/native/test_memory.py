"""Loads and stores give the interpreter's bits, or are left to it."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator.machine.wave import Waves
from tests.emulator.native.both import (
    KEEPING,
    copied,
    differences,
    interpret,
    known,
    random_waves,
    run_natively,
)

_MODE = KEEPING.mode
LDS = [
    *(f"ds_read_{kind} v2, v0 offset:8" for kind in ("b32", "u8", "i8", "u16", "i16")),
    *(f"ds_read_{kind} v2, v0" for kind in ("u8_d16", "u8_d16_hi", "i8_d16", "u16_d16_hi")),
    "ds_read_b64 v[0:1], v0", "ds_read_b96 v[4:6], v0", "ds_read_b128 v[0:3], v0 offset:16",
    "ds_read_b128 a[0:3], v0", "ds_read2_b32 v[0:1], v0 offset0:1 offset1:3",
    "ds_read2st64_b64 v[4:7], v0 offset1:1", "ds_read2_b64 v[4:7], v0 offset0:2 offset1:5",
    *(f"ds_write_{kind} v0, v3" for kind in ("b32", "b8", "b16", "b8_d16_hi", "b16_d16_hi")),
    "ds_write_b64 v0, v[4:5] offset:8", "ds_write_b128 v0, a[4:7]", "ds_write_b96 v0, v[4:6]",
    "ds_write2_b32 v0, v3, v4 offset0:1 offset1:9", "ds_write2st64_b64 v0, v[4:5], v[8:9]",
]  # fmt: skip
GLOBAL = [
    *(f"global_load_{kind} v2, v[8:9], off offset:4" for kind in ("dword", "ubyte", "sshort")),
    "global_load_dwordx4 v[8:11], v[8:9], off", "global_load_dwordx2 a[2:3], v[8:9], off",
    "global_load_short_d16_hi v2, v[8:9], off", "global_load_dword v2, v0, s[4:5]",
    "global_load_dwordx3 v[0:2], v0, s[4:5] offset:-4",
    *(f"global_store_{kind} v[8:9], v3, off" for kind in ("dword", "byte", "short")),
    "global_store_dwordx4 v[8:9], v[12:15], off", "global_store_dwordx2 v0, a[2:3], s[4:5]",
    "global_store_short_d16_hi v[8:9], v3, off",
    *(f"buffer_load_{kind} v2, off, s[8:11], 0 offset:8" for kind in ("dword", "ubyte")),
    "buffer_load_dwordx4 v[0:3], v0, s[8:11], 0 offen",
    "buffer_load_dword v2, v0, s[8:11], s6 offen",
    "buffer_load_dwordx2 v[2:3], v1, s[8:11], 4 idxen",
    "buffer_load_short_d16 v2, v0, s[8:11], 0 offen",
    "buffer_load_dword v2, v[0:1], s[8:11], 0 idxen offen",
    "buffer_store_dword v2, v0, s[8:11], 0 offen",
    "buffer_store_dwordx4 v[4:7], v0, s[8:11], 0 offen",
    "s_load_dword s20, s[4:5], 0x8", "s_load_dwordx4 s[4:7], s[4:5], 0x10",
    "s_load_dwordx8 s[20:27], s[4:5], s6", "s_load_dwordx2 s[20:21], s[4:5], s6 offset:0x4",
]  # fmt: skip


def prepared(seed: int, lanes: str) -> Waves:
    """Waves whose v0 and v[8:9] are addresses that exist, and whose descriptor ends among them."""
    waves = copied(random_waves(seed, _MODE, lanes))
    generator = np.random.default_rng(seed)
    # Multiples of 16 of the first waves' lanes are never the same.
    places = generator.permuted(np.tile(np.arange(64), (waves.count, 1)), axis=1) * 16
    waves.vector[0] = places
    waves.vector[1] = places // 16 % 7
    first = waves.memory.segments[0]
    addresses = first.address + places.astype(np.uint64) + np.uint64(64)
    waves.vector[8], waves.vector[9] = addresses & np.uint64(0xFFFF_FFFF), addresses >> 32
    base = first.address + 64
    waves.scalar[4], waves.scalar[5], waves.scalar[6] = base & 0xFFFF_FFFF, base >> 32, 24
    waves.scalar[8], waves.scalar[9] = base & 0xFFFF_FFFF, base >> 32
    waves.scalar[9] |= 8 << 16
    waves.scalar[10], waves.scalar[11] = 512, 0x27000
    return waves


@pytest.mark.parametrize("text", [*LDS, *GLOBAL])
@pytest.mark.parametrize("lanes", ["all", "random", "few"])
def test_same_bits(text: str, lanes: str) -> None:
    each = known(text, KEEPING)
    assert each is not None
    for seed in range(3):
        one, other = (prepared(seed, lanes) for _ in range(2))
        interpret(one, [each.instruction], KEEPING)
        assert run_natively(other, [each.step]) == 1
        assert not differences(one, other)


@pytest.mark.parametrize("text", [
    "ds_read_b128 v[0:3], v0", "ds_read2_b32 v[2:3], v0 offset1:3", "ds_write_b64 v0, v[4:5]",
])  # fmt: skip
def test_outside_of_the_lds(text: str) -> None:
    each, waves = known(text, KEEPING), prepared(0, "all")
    assert each is not None
    waves.vector[0, 1, 7] = waves.lds.size - 3
    _left_alone(each.step, waves, keeps_loads="v[2:3]" not in text)


@pytest.mark.parametrize("text", [
    "global_load_dwordx2 v[8:9], v[8:9], off", "global_store_dword v[8:9], v3, off",
    "global_store_dwordx4 v[8:9], v[12:15], off",
])  # fmt: skip
@pytest.mark.parametrize("by", [1 << 20, 1 << 40, -(1 << 33)])
def test_outside_of_memory(text: str, by: int) -> None:
    each, waves = known(text, KEEPING), prepared(0, "all")
    assert each is not None
    address = (waves.memory.segments[0].address + by) % (1 << 64)
    waves.vector[8:10, 1, 9] = address & 0xFFFF_FFFF, address >> 32
    _left_alone(each.step, waves)


def test_stores_to_what_is_constant() -> None:
    each, waves = known("global_store_dword v[8:9], v3, off", KEEPING), prepared(0, "all")
    assert each is not None
    address = waves.memory.segments[1].address
    waves.vector[8:10, 2, 3] = address & 0xFFFF_FFFF, address >> 32
    _left_alone(each.step, waves)


def test_stores_at_odd_addresses() -> None:
    each, waves = known("ds_write_b64 v0, v[4:5]", KEEPING), prepared(0, "all")
    assert each is not None
    waves.vector[0, 1, 3] += 2
    _left_alone(each.step, waves)


def test_part_of_a_buffer() -> None:
    text = "buffer_load_dwordx4 v[0:3], v0, s[8:11], 0 offen"
    each, waves = known(text, KEEPING), prepared(0, "all")
    assert each is not None
    waves.scalar[10] = 520
    _left_alone(each.step, waves)


def _left_alone(step: object, waves: Waves, keeps_loads: bool = True) -> None:
    """The interpreter has to execute it, and finds what it was to read as it was."""
    from mfmadsl.emulator.native.form import NativeStep

    assert isinstance(step, NativeStep)
    before = copied(waves)
    assert run_natively(waves, [step]) == 0
    if keeps_loads:
        assert not differences(before, waves)
