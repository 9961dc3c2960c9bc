"""What comes after what: the proxies, and tensor memory's fences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from b200.order import (
    Clock,
    Event,
    Order,
    Unit,
    join,
    shared_follows,
    tensor_follows,
)
from b200.place import Place, Statement

CLOCKS = st.dictionaries(st.integers(1, 4), st.integers(1, 9))
OWN, OTHER = 1, 2


def event(component: int, time: int | None, unit: Unit) -> Event:
    return Event(component, time, unit, Place("warp", Statement("statement")))


@pytest.mark.parametrize(
    ("earlier", "later", "fence"),
    [
        (Unit.THREADS, Unit.THREADS, False),
        (Unit.THREADS, Unit.MMA, True),
        (Unit.THREADS, Unit.TMA, True),
        (Unit.MMA, Unit.THREADS, True),
        (Unit.MMA, Unit.TMA, False),
        (Unit.TMA, Unit.THREADS, False),  # its completion has a fence within it
        (Unit.TMA, Unit.MMA, False),
    ],
)
def test_accesses_through_different_proxies_need_a_fence(
    earlier: Unit, later: Unit, fence: bool
) -> None:
    before, after = event(OTHER, 3, earlier), event(OWN, 1, later)
    assert not shared_follows(Order(seen={OTHER: 2}), after, before)
    assert shared_follows(Order(seen={OTHER: 3}), after, before) is not fence
    assert shared_follows(Order(seen={OTHER: 3}, proxied={OTHER: 3}), after, before)


def test_what_has_not_ended_is_before_nothing() -> None:
    load = event(OTHER, None, Unit.TMA)
    assert not shared_follows(Order(seen={OTHER: 9}), event(OWN, 1, Unit.THREADS), load)


@pytest.mark.parametrize(
    ("unit", "ordered"), [(Unit.THREADS, True), (Unit.MMA, True), (Unit.TMA, False)]
)
def test_warps_and_queues_of_mmas_are_in_order_and_loads_are_not(unit: Unit, ordered: bool) -> None:
    assert shared_follows(Order(), event(OWN, 2, unit), event(OWN, 1, unit)) is ordered


def test_a_warps_own_write_needs_a_fence_before_its_own_mma() -> None:
    write, mma = event(OWN, 5, Unit.THREADS), event(OTHER, 1, Unit.MMA)
    assert not shared_follows(Order(seen={OWN: 5}), mma, write)
    assert shared_follows(Order(proxied={OWN: 5}), mma, write)


def test_tensor_memory_is_ordered_by_what_a_fence_has_told() -> None:
    read, mma = event(OTHER, 2, Unit.TENSOR_LOAD), event(OWN, 1, Unit.MMA)
    assert not tensor_follows({}, mma, read)
    assert tensor_follows({OTHER: 2}, mma, read)
    assert tensor_follows({}, event(OWN, 2, Unit.MMA), mma), "a queue of MMAs is in order"


@given(CLOCKS, CLOCKS, CLOCKS)
def test_joining_clocks_is_a_least_upper_bound(a: Clock, b: Clock, c: Clock) -> None:
    def joined(*clocks: Clock) -> Clock:
        result: Clock = {}
        for clock in clocks:
            join(result, clock)
        return result

    assert joined(a, b) == joined(b, a)
    assert joined(joined(a, b), c) == joined(a, joined(b, c))
    assert joined(a, a) == a
    assert all(joined(a, b)[component] >= time for component, time in a.items())


@given(CLOCKS, CLOCKS)
def test_a_copy_stays_as_it_is(a: Clock, b: Clock) -> None:
    order = Order(seen=dict(a))
    copy = order.copy()
    order.acquire(Order(seen=b, proxied=b, fenced=b))
    assert copy == Order(seen=a)
