"""A swizzle keeps together what one access reads, wherever that starts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.emulator.profiler.lds_cycles import lds_cycles
from mfmadsl.model import ARCHITECTURES
from mfmadsl.passes.main_loop.lds.places import Swizzle, swizzled
from mfmadsl.passes.main_loop.lds.swizzle import WaveAccess, choose

CHIPS = {32: ARCHITECTURES["gfx942"], 64: ARCHITECTURES["gfx950"]}  # by the banks that reads see


@pytest.mark.parametrize("first", [0, 1, 2, 3, 6, 7])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_elements_of_an_access_stay_neighbours(first: int, count: int) -> None:
    """Of halves of 64 rows of 64, each lane from the same column on."""
    places = tuple(64 * lane + first for lane in range(64))
    swizzle = choose([WaveAccess(places, 2 * count, True)], 2, 64 * 64, CHIPS[32])
    for place in places:
        moved = [x ^ swizzled(x, swizzle) if swizzle else x for x in range(place, place + count)]
        assert moved == list(range(moved[0], moved[0] + count))


def cycles_of(access: WaveAccess, swizzle: Swizzle, banks: int) -> int:
    """By the banks of the profiler, which were measured."""
    plain = np.asarray(access.places)
    where = plain ^ swizzled(plain, swizzle) if swizzle else plain
    active = np.ones((1, 64), np.bool_)
    found, _ = lds_cycles(CHIPS[banks], where[None] * 2, active, access.size, access.is_read)
    return int(found[0])


@pytest.mark.parametrize("banks", [32, 64])
@pytest.mark.parametrize("rows", [16, 32])
@pytest.mark.parametrize("stride", [32, 64, 128])
def test_fragments_are_read_without_conflicts(banks: int, rows: int, stride: int) -> None:
    """Of 16 bytes a lane, from rows of as many elements."""
    places = tuple(n % rows * stride + n // rows * 8 for n in range(64))
    access = WaveAccess(places, 16, True)
    swizzle = choose([access], 2, 64 * 128, CHIPS[banks])
    assert cycles_of(access, swizzle, banks) == 64 * 16 // (4 * banks)
    assert cycles_of(access, (), banks) > cycles_of(access, swizzle, banks)


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
    accesses = []
    for stride, rows, size, is_read in shapes:
        places = tuple(n % rows * stride + n // rows * (size // 2) for n in range(64))
        accesses.append(WaveAccess(places, size, is_read))
    swizzle = choose(accesses, 2, 64 * 64, CHIPS[banks])
    plain, moved = (sum(cycles_of(a, s, banks) for a in accesses) for s in ((), swizzle))
    assert moved <= plain


@pytest.mark.parametrize("banks", [32, 64])
@pytest.mark.parametrize("turns", [2, 4])
@pytest.mark.parametrize("length", [256, 512, 1024])
def test_neighbours_are_written_in_turn_without_conflicts(
    banks: int, turns: int, length: int
) -> None:
    """Each lane writes chunks that lie together one after the other; fragments are read of rows."""
    writes = WaveAccess(tuple(8 * turns * lane for lane in range(64)), 16, False)
    reads = WaveAccess(tuple(n % 16 * length + n // 16 * 8 for n in range(64)), 16, True)
    swizzle = choose([writes, reads], 2, 16 * length, CHIPS[banks])
    assert cycles_of(writes, swizzle, banks) == 64 * 16 // (4 * CHIPS[banks].lds_banks)
    assert cycles_of(reads, swizzle, banks) == 64 * 16 // (4 * banks)
    places = np.arange(16 * length)
    assert len(np.unique(places ^ swizzled(places, swizzle))) == len(places)
