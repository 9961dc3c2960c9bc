"""What an address outside of all memory is said to be near."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator.machine.memory import GlobalMemory, Segment

FIRST = 0x10000


@pytest.mark.parametrize(
    ("address", "told"),
    [
        (0x10110, "offset 272 of `A`, which has 256 bytes"),
        (0x10208, "offset 8 of an allocation of 64 bytes that is freed"),
        (0x10240, "offset 64 of an allocation of 64 bytes that is freed, or 192 bytes before `B`"),
        (0x102F0, "16 bytes before `B`, which has 256 bytes"),
        (0x10500, "offset 512 of `B`, which has 256 bytes"),
        (0x12010, "offset 80 of an allocation of 64 bytes that is freed"),
        (0x19000, "nowhere"),
    ],
)
def test_the_nearest_is_told_and_what_was_there_before(address: int, told: str) -> None:
    segments = [Segment("A", FIRST, 256), Segment("B", 0x10300, 256)]
    freed = [(0x10200, 64), (0x11FC0, 64)]
    memory = GlobalMemory(
        np.zeros(0x10000, np.uint8), FIRST, segments, elsewhere="nowhere", reach=4096, freed=freed
    )
    assert memory.describe(address - FIRST).startswith(told)
