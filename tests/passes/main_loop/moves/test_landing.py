"""When loads straight into the LDS have come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.passes.main_loop.moves.landing import Landing, landing

STEPS = 4


@st.composite
def landings(draw: st.DrawFn) -> Landing:
    step = st.integers(0, STEPS - 1)
    pair = st.tuples(step, step).map(lambda ends: (min(ends), max(ends)))
    reads = draw(st.lists(pair, min_size=1, max_size=6))
    return landing(reads, STEPS, draw(st.booleans()), draw(st.integers(2, 4)))


@given(landings(), st.integers(0, 5))
def test_all_iterations_but_the_last_ones_wait_alike(found: Landing, iteration: int) -> None:
    """2^30 iterations take no longer to find. Where nothing is needed, all that were ever started
    may be under way."""
    started = 2**30 * len(found.reads)
    for step in found.barriers:
        early = found.under_way(iteration, step)
        late = found.under_way(2**30 + iteration, step, 2**31)
        assert late - early in (0, started)


def test_what_one_load_of_two_brings_is_waited_for() -> None:
    """Both are read in the first step, so they start after the last one: in the end of iteration t
    those of t + 2 are not yet asked for, and those of t + 1 must have come."""
    found = landing([(0, 0), (0, 1)], 2, False, 2)
    assert found.order == [0, 1]
    assert [found.under_way(t, 1) for t in (-1, 0, 7, 2**30)] == [2, 0, 0, 0]
    assert found.under_way(7, 1, 7) == 16


@given(landings())
def test_a_load_starts_once_its_place_is_free(found: Landing) -> None:
    for step, numbers in found.started.items():
        for number in numbers:
            last = found.reads[number][1]
            assert any(last <= barrier <= step for barrier in found.barriers)
    assert sorted(found.order) == list(range(len(found.reads)))


def test_loads_are_spread_over_the_steps_from_the_first_barrier_on() -> None:
    """Six of the eight could start at once, more than the vector L1 has lines for."""
    reads = [(0, 1), (2, 3), (0, 1), (2, 3), (0, 1), (0, 1), (0, 1), (0, 1)]
    assert landing(reads, 4, True, 2).started == {1: [0, 2, 4], 2: [5, 6, 7], 3: [1, 3]}
