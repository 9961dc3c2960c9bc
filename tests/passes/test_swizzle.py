"""A swizzle keeps together what one access reads, wherever that starts."""

from __future__ import annotations

import pytest

from mfmadsl.passes.places import swizzled
from mfmadsl.passes.swizzle import Access, choose


@pytest.mark.parametrize("first", [0, 1, 2, 3, 6, 7])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_elements_of_an_access_stay_neighbours(first: int, count: int) -> None:
    """Of halves of 64 rows of 64, each lane from the same column on."""
    places = tuple(64 * lane + first for lane in range(64))
    swizzle = choose([Access(places, 2 * count, True)], 2, 64 * 64, 32)
    for place in places:
        moved = [x ^ swizzled(x, swizzle) if swizzle else x for x in range(place, place + count)]
        assert moved == list(range(moved[0], moved[0] + count))
