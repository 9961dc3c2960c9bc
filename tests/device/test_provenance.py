"""Which allocations a launch's arguments lead to."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pytest

from mfmadsl.device.provenance import Reach
from mfmadsl.emulator.machine.memory import GlobalMemory, Segment

START = 0x7E00_0000_0000
X, Y, Z = (Segment(name, START + place, 64) for name, place in
           (("x", 0x1000), ("y", 0x3000), ("z", 0x6000)))  # fmt: skip


def reach(
    arguments: bytes, stored: dict[int, bytes] | None = None, modules: Sequence[Segment] = ()
) -> Reach:
    """What is reached where some bytes lie at some addresses."""
    memory = GlobalMemory(np.zeros(0x8000, np.uint8), START, (X, Y, Z))
    for address, content in (stored or {}).items():
        memory.content(Segment("", address, len(content)))[:] = np.frombuffer(content, np.uint8)
    return Reach(memory, arguments, (X, Y, Z), modules, ())


def pointer(segment: Segment, offset: int = 0) -> bytes:
    return struct.pack("<Q", segment.address + offset)


@pytest.mark.parametrize("offset", [0, 60, 64])
def test_what_an_argument_points_into_is_reached(offset: int) -> None:
    assert reach(pointer(X, offset)).unreached == (Y, Z)
    assert reach(b"\0\0\0" + pointer(X, offset)).unreached == (Y, Z)


def test_pointers_in_memory_are_followed() -> None:
    assert reach(pointer(X), {X.address + 5: pointer(Y), Y.address: pointer(Z)}).unreached == ()
    assert reach(pointer(X), {Y.address: pointer(Z)}).unreached == (Y, Z)
    tagged = struct.pack("<Q", Y.address | 0xABCD << 48)
    assert reach(pointer(X), {X.address: tagged}).unreached == (Z,)


def test_what_modules_point_to_is_reached() -> None:
    assert reach(pointer(X), {Y.address: pointer(Z)}, [Y]).unreached == ()


@pytest.mark.parametrize(
    ("number", "distant"),
    [
        (0x2000, True),
        (0x800, True),
        (0x2040, True),
        (0x2081, False),
        (100, False),
        (-0x2000, False),
    ],
)
def test_a_distance_among_the_arguments_may_lead_elsewhere(number: int, distant: bool) -> None:
    assert reach(pointer(X) + struct.pack("<i", number)).distant(Y) is distant
    assert reach(pointer(X), {X.address: struct.pack("<q", number)}).distant(Y) is distant
