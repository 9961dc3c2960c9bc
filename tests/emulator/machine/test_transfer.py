"""Every width that a load or store can have, in global memory, LDS, scratch memory and buffers."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.machine.width import WIDTHS
from tests.emulator.waves import put, run, vector, wave

LANE = np.arange(64, dtype=np.uint32)
BYTES = (np.arange(4096) * 37 % 256).astype(np.uint8)
OLD = 0xAAAABBBB
ANY_CHIP = ""  # not all of these names are instructions of one

# name: (bytes, whether they are extended by their sign, the half of the register that changes)
MEANING = {
    "dword": (4, False, ""), "dwordx2": (8, False, ""), "dwordx3": (12, False, ""),
    "dwordx4": (16, False, ""), "b8": (1, False, ""), "b16": (2, False, ""), "b32": (4, False, ""),
    "b64": (8, False, ""), "b96": (12, False, ""), "b128": (16, False, ""),
    "ubyte": (1, False, ""), "sbyte": (1, True, ""), "byte": (1, False, ""), "u8": (1, False, ""),
    "i8": (1, True, ""), "ushort": (2, False, ""), "sshort": (2, True, ""), "short": (2, False, ""),
    "u16": (2, False, ""), "i16": (2, True, ""),
    **{f"{name}_d16{suffix}": (size, signed, half)
       for name, size, signed in (("ubyte", 1, False), ("sbyte", 1, True), ("byte", 1, False),
                                  ("u8", 1, False), ("i8", 1, True), ("b8", 1, False),
                                  ("short", 2, False), ("u16", 2, False), ("b16", 2, False))
       for suffix, half in (("", "lo"), ("_hi", "hi"))},
}  # fmt: skip


def filled() -> Waves:
    """Bytes in memory and LDS; their addresses by lane in v[0:1] and v2."""
    waves = wave(lds=2048)
    (segment,) = waves.memory.segments
    waves.memory.content(segment)[:] = BYTES
    waves.lds.store_words(np.arange(0, 2048, 4), BYTES[:2048].view(np.uint32)[None])
    put(waves, {"v[0:1]": np.uint64(segment.address) + 16 * LANE.astype(np.uint64),
                "v2": 16 * LANE, "s[2:3]": np.uint64(segment.address)})  # fmt: skip
    put(waves, {f"v{8 + i}": np.full(64, OLD, np.uint32) for i in range(4)})
    return waves


def expected(name: str) -> list[np.ndarray]:
    """What the registers hold after a load, by the meaning of the name."""
    size, signed, half = MEANING[name]
    rows = BYTES[: 64 * 16].reshape(64, 16)[:, :size].copy()
    if size >= 4:
        return list(rows.view(np.uint32).T)
    value = rows.view(f"{'i' if signed else 'u'}{size}")[:, 0].astype(np.int64).astype(np.uint32)
    if half == "hi":
        return [value << np.uint32(16) | np.uint32(OLD & 0xFFFF)]
    return [value & np.uint32(0xFFFF) | np.uint32(OLD & 0xFFFF0000)] if half else [value]


@pytest.mark.parametrize("name", WIDTHS)
@pytest.mark.parametrize(
    "form", ["global_load_{} {}, v2, s[2:3]", "flat_load_{} {}, v[0:1]", "ds_read_{} {}, v2"]
)
def test_loads(name: str, form: str) -> None:
    waves = filled()
    run(waves, form.format(name, f"v[8:{7 + len(expected(name))}]"), ANY_CHIP)
    for i, word in enumerate(expected(name)):
        assert (vector(waves, 8 + i) == word).all()


@pytest.mark.parametrize("name", WIDTHS)
@pytest.mark.parametrize("form", ["global_store_{} v2, {}, s[2:3]", "ds_write_{} v2, {}"])
def test_stores_change_nothing_else(name: str, form: str) -> None:
    waves = filled()
    size, _, half = MEANING[name]
    put(waves, {f"v{8 + i}": LANE * np.uint32(0x01010101 * (i + 1)) + 7 for i in range(4)})
    registers = np.stack([vector(waves, 8 + i) for i in range(4)], axis=1).view(np.uint8)
    run(waves, form.format(name, f"v[8:{8 + max(1, size // 4) - 1}]"), ANY_CHIP)
    if form.startswith("global"):
        found = waves.memory.content(waves.memory.segments[0])[:1024].reshape(64, 16)
    else:
        found = waves.lds.load_words(np.arange(0, 1024, 4), 1)[0].view(np.uint8).reshape(64, 16)
    first = 2 if half == "hi" else 0
    assert (found[:, :size] == registers[:, first : first + size]).all()
    assert (found[:, size:] == BYTES[:1024].reshape(64, 16)[:, size:]).all()


def test_every_width_has_its_meaning() -> None:
    assert set(WIDTHS) == set(MEANING)
