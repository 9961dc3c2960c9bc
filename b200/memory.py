"""Accesses to shared memory, checked: bounds, races, and what was never written."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from b200.barriers import MBarrier
from b200.machine import RANK_BIT, WORD, Cta, Machine, Warp
from b200.order import Event, Order, Unit, shared_follows
from b200.place import Place
from b200.report import Kind

Bytes = NDArray[np.int64]


def address(rank: int, offset: int) -> int:
    """Of a byte in the shared memory of a cluster's CTA."""
    return rank << RANK_BIT | offset


def located(warp: Warp, where: int, place: Place) -> tuple[Cta, int]:
    """The CTA of an address, and the byte in it.

    Raises:
        HaltError: there is none, or it has ended.
    """
    rank, offset = where >> RANK_BIT, where & ((1 << RANK_BIT) - 1)
    ctas = warp.cta.cluster.ctas
    if not 0 <= rank < len(ctas) or offset >= ctas[rank].size:
        raise warp.machine.stop(
            Kind.OUT_OF_BOUNDS, f"address {where:#x} is not in the cluster's shared memory", place
        )
    if ctas[rank].exited:
        raise warp.machine.stop(
            Kind.LIFETIME, f"shared memory of {ctas[rank]} is used after it exited", place
        )
    return ctas[rank], offset


def check_bounds(machine: Machine, cta: Cta, places: Bytes, size: int, place: Place) -> None:
    """Refuse elements of `size` bytes beyond the end.

    Raises:
        HaltError: there are some.
    """
    if places.size and (places.min() < 0 or places.max() + size > cta.size):
        raise machine.stop(
            Kind.OUT_OF_BOUNDS,
            f"byte {int(places.max()) + size - 1} of {cta.size} of shared memory",
            place,
        )


def race(machine: Machine, what: str, earlier: Event, place: Place) -> None:
    """Enter that nothing orders an access after an earlier one."""
    machine.fault(Kind.RACE, f"nothing orders this {what} after {earlier.place}", place)


def enter_read(cta: Cta, places: Bytes, event: int, order: Order) -> None:
    """Check a read of these bytes, by one who knows `order`."""
    machine, now = cta.machine, cta.machine.events[event]
    follows = follower(order, now)
    for earlier in cta.shared_shadow.read(places // WORD, event, follows):
        if earlier is None:
            machine.fault(
                Kind.UNINITIALISED, "reads shared memory that nobody has written", now.place
            )
        else:
            race(machine, "read of shared memory", earlier, now.place)


def enter_write(cta: Cta, places: Bytes, event: int, order: Order) -> None:
    """Check a write of these bytes, by one who knows `order`."""
    machine, now = cta.machine, cta.machine.events[event]
    for earlier in cta.shared_shadow.write(places // WORD, event, follower(order, now)):
        race(machine, "write of shared memory", earlier, now.place)


def follower(order: Order, now: Event) -> Callable[[Event], bool]:
    """Whether `now` comes after an event."""
    return lambda earlier: shared_follows(order, now, earlier)


def elements(cta: Cta, dtype: str, places: Bytes) -> tuple[NDArray[np.generic], Bytes]:
    """Shared memory as elements of a type, and which of them begin at these bytes."""
    return cta.shared.view(dtype), places // np.dtype(dtype).itemsize


def make_barrier(warp: Warp, where: int, count: int, place: Place) -> None:
    """`mbarrier.init`: the barrier is eight bytes that the threads write.

    Raises:
        CountError: a count that PTX does not allow.
    """
    cta, offset = located(warp, where, place)
    event = warp.access(place)
    enter_write(cta, np.array([offset, offset + WORD]), event, warp.order)
    cta.barriers[offset] = MBarrier(count, warp.machine.events[event], warp.machine.component())


def barrier_at(
    warp: Warp, where: int, place: Place, *, by: Unit = Unit.THREADS
) -> tuple[Cta, MBarrier]:
    """The barrier at an address, checked to be made before this use of it.

    Raises:
        HaltError: there is none.
    """
    machine = warp.machine
    cta, offset = located(warp, where, place)
    barrier = cta.barriers.get(offset)
    if barrier is None:
        raise machine.stop(Kind.BARRIER, f"there is no mbarrier at byte {offset} of {cta}", place)
    writer = int(cta.shared_shadow.writer[offset // WORD])
    if machine.events[writer] is not barrier.made:
        raise machine.stop(
            Kind.BARRIER, f"the mbarrier at byte {offset} of {cta} was overwritten", place
        )
    made = barrier.made.component == warp.component or barrier.made.within(warp.order.seen)
    if by is not Unit.THREADS:
        made = barrier.made.within(warp.order.proxied) or any(
            warp.order.seen.get(component, 0) >= time for component, time in barrier.published
        )
    if not made:
        how = "" if by is Unit.THREADS else " by an asynchronous unit"
        machine.fault(
            Kind.RACE, f"nothing orders this use of an mbarrier{how} after its initialisation",
            place,
        )  # fmt: skip
    return cta, barrier
