"""Where the first product leaves its sums is where the second one takes its factor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.language import find, library
from mfmadsl.model import Intrinsic
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.flash_attention.chain import Chain

HALVES = [
    each for each in library().values()
    if each.a.type.dtype == each.b.type.dtype and each.a.type.dtype in ("float16", "bfloat16")
    and each.blocks == 1 and not each.sparse
]  # fmt: skip


@given(st.sampled_from(HALVES), st.sampled_from([1, 2, 4]))
def test_each_lane_has_the_keys_that_its_factor_is_of(intrinsic: Intrinsic, pack: int) -> None:
    chain = Chain(intrinsic, 1, pack)
    sums, factor = intrinsic.c.layout, chain.second.b.layout
    assert sorted(chain.keys) == list(range(chain.period))
    for lane in range(64):
        for n in range(chain.period * intrinsic.n // 64):
            tile, register = divmod(n, sums.elements_per_lane)
            step, element = divmod(n, factor.elements_per_lane)
            _, row, query = sums.element(lane, register)
            _, k, column = factor.element(lane, element)
            assert query == column == chain.query.value(lane=lane)
            assert chain.keys[tile * intrinsic.m + row] == step * chain.second.k + k


@given(st.sampled_from(HALVES))
def test_the_lanes_of_a_query_are_those_at_its_distances(intrinsic: Intrinsic) -> None:
    chain = Chain(intrinsic, 1, 1)
    for lane in range(64):
        own = {lane}
        for distance in chain.distances:
            own |= {other ^ distance for other in own}
        query = chain.query.value(lane=lane)
        assert own == {x for x in range(64) if chain.query.value(lane=x) == query}


def test_a_deeper_instruction_takes_keys_in_another_order() -> None:
    """AMD's layouts: of 32x32x8 lanes have rows 0 to 3 and 4 to 7 in turn, as factors have k; of
    32x32x16 a lane's factors are of eight k, its sums of rows 0 to 3 and 8 to 11."""
    assert Chain(find("mfma_f32_32x32x8_f16"), 2, 1).keys == tuple(range(32))
    first = Chain(find("mfma_f32_32x32x16_f16"), 1, 1).keys[:16]
    assert first == (0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15)


def test_an_instruction_of_other_sums_is_refused() -> None:
    with pytest.raises(ScheduleError, match="no attention is made of it"):
        _ = Chain(find("mfma_f32_4x4x4_16b_f16"), 1, 1).keys
