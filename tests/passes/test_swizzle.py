"""A swizzle keeps together what one access reads, wherever that starts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.emulator.profiler.chip import chip_of
from mfmadsl.emulator.profiler.lds_cycles import lds_cycles
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


@given(
    st.lists(
        st.tuples(
            st.sampled_from([1, 2, 4, 8, 16, 36, 64]), st.sampled_from([16, 32, 64]),
            st.sampled_from([2, 4, 8, 16]), st.booleans(),
        ),
        min_size=1, max_size=3,
    ),
    st.sampled_from([32, 64]),
)  # fmt: skip
def test_no_swizzle_is_worse_than_none(
    shapes: list[tuple[int, int, int, bool]], banks: int
) -> None:
    """By the banks of the profiler, which were measured."""
    accesses = []
    for stride, rows, size, is_read in shapes:
        places = tuple(n % rows * stride + n // rows * (size // 2) for n in range(64))
        accesses.append(Access(places, size, is_read))
    swizzle = choose(accesses, 2, 64 * 64, banks)
    chip = chip_of("gfx950" if banks == 64 else "gfx942")
    cycles = [0, 0]
    for access in accesses:
        plain = np.asarray(access.places)
        moved = plain ^ swizzled(plain, swizzle) if swizzle else plain
        for n, where in enumerate((plain, moved)):
            active = np.ones((1, 64), np.bool_)
            found, _ = lds_cycles(chip, where[None] * 2, active, access.size, access.is_read)
            cycles[n] += int(found[0])
    assert cycles[1] <= cycles[0]
