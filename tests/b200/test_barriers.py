"""mbarrier objects do what PTX says of them ("Parallel Synchronization: mbarrier")."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from b200.barriers import (
    LARGEST_COUNT,
    CountError,
    MBarrier,
    ThreadBarrier,
)
from b200.order import Event, Order, Unit
from b200.place import Place, Statement

LOADS = 7  # the component of the barrier's loads


def barrier(count: int) -> MBarrier:
    return MBarrier(count, Event(1, 1, Unit.THREADS, Place("warp", Statement("init"))), LOADS)


def test_the_first_phase_has_parity_0_and_the_one_before_it_counts_as_ended() -> None:
    fresh = barrier(1)
    assert not fresh.passed(0)
    assert fresh.passed(1)


def test_a_phase_ends_with_its_last_arrival() -> None:
    three = barrier(3)
    three.arrive(2, Order())
    assert not three.passed(0)
    three.arrive(1, Order())
    assert three.passed(0)
    assert not three.passed(1)
    assert three.pending == 3, "the next phase waits for as many"


def test_a_phase_waits_for_its_bytes_too() -> None:
    loads = barrier(1)
    loads.expect(4096)
    loads.arrive(1, Order())
    loads.complete(4095)
    assert not loads.passed(0)
    loads.complete(1)
    assert loads.passed(0)


def test_bytes_may_come_before_they_are_announced() -> None:
    loads = barrier(1)
    loads.complete(4096)
    assert loads.transactions == -4096
    assert not loads.passed(0)
    loads.expect(4096)
    loads.arrive(1, Order())
    assert loads.passed(0)


def test_bytes_alone_end_no_phase() -> None:
    loads = barrier(1)
    loads.expect(64)
    loads.complete(64)
    assert not loads.passed(0)


def test_too_few_bytes_let_the_rest_count_in_the_next_phase() -> None:
    loads = barrier(1)
    loads.expect(64)
    loads.arrive(1, Order())
    loads.complete(64)
    loads.complete(64)
    assert loads.ended == 1
    assert loads.transactions == -64


@pytest.mark.parametrize("count", [0, -1, LARGEST_COUNT + 1])
def test_counts_beyond_the_range_are_refused(count: int) -> None:
    with pytest.raises(CountError, match="arrivals"):
        barrier(count)
    with pytest.raises(CountError, match="arrive takes"):
        barrier(1).arrive(count, Order())


def test_more_arrivals_than_a_phase_waits_for_are_refused() -> None:
    two = barrier(2)
    two.expect(16)
    two.arrive(2, Order())
    with pytest.raises(CountError, match="1 arrivals where the phase 0 waits for 0"):
        two.arrive(1, Order())


def test_the_transaction_count_overflows() -> None:
    loads = barrier(1)
    loads.expect(LARGEST_COUNT)
    with pytest.raises(CountError, match="overflows"):
        loads.expect(1)
    with pytest.raises(CountError, match="expect-tx"):
        loads.expect(-1)


def test_an_ended_phase_hands_on_what_those_who_arrived_knew() -> None:
    two = barrier(2)
    two.arrive(1, Order(seen={3: 30}, proxied={4: 40}, fenced={5: 50}))
    assert two.visible == Order(), "the phase has not ended"
    two.arrive(1, Order(seen={3: 20, 6: 60}))
    assert two.visible == Order(seen={3: 30, 6: 60, LOADS: 1}, proxied={4: 40}, fenced={5: 50})


@given(
    counts=st.lists(st.integers(1, 5), min_size=1, max_size=6),
    phases=st.integers(1, 4),
    data=st.data(),
)
def test_a_phase_ends_once_in_whatever_order_arrivals_and_bytes_come(
    counts: list[int], phases: int, data: st.DataObject
) -> None:
    here = barrier(sum(counts))
    for phase in range(phases):
        # The bytes come after the announcement or before, but never after the phase.
        steps = data.draw(st.permutations([("arrive", count) for count in counts]))
        steps = [("expect", 96), *steps, ("complete", 96)]
        position = data.draw(st.integers(0, len(steps) - 1))
        steps.insert(position, ("complete", 32))
        steps.insert(0, ("expect", 32))
        for name, size in steps:
            assert here.ended == phase
            if name == "arrive":
                here.arrive(size, Order())
            else:
                getattr(here, name)(size)
        assert here.ended == phase + 1
        assert here.passed(phase % 2)
        assert (here.pending, here.transactions) == (sum(counts), 0)


def test_warps_meet_when_all_are_there() -> None:
    meeting = ThreadBarrier(0)
    first = meeting.arrive("a", 2, Order(seen={1: 1}))
    assert not meeting.met(first)
    assert meeting.met(meeting.arrive("b", 2, Order(seen={2: 2})))
    assert meeting.met(first)
    assert meeting.visible.seen == {1: 1, 2: 2}
    assert not meeting.met(meeting.arrive("a", 2, Order())), "it can be used again"


def test_a_barrier_of_two_sizes_is_refused() -> None:
    meeting = ThreadBarrier(0)
    meeting.arrive("a", 4, Order())
    with pytest.raises(CountError, match="a barrier of 128 threads is used with 256"):
        meeting.arrive("b", 8, Order())


def test_a_warp_that_arrives_twice_is_refused() -> None:
    meeting = ThreadBarrier(0)
    meeting.arrive("a", 4, Order())
    with pytest.raises(CountError, match="twice"):
        meeting.arrive("a", 4, Order())
