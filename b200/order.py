"""What is known to have happened before: vector clocks of threads and of asynchronous units."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from b200.place import Place

Clock = dict[int, int]
"""For each component (a warp, a queue of MMAs, a barrier's loads), up to which time it is known."""


class Unit(Enum):
    """Who accesses memory."""

    THREADS = auto()  # generic proxy
    TMA = auto()  # async proxy; its completion is a fence between the proxies
    MMA = auto()  # async proxy; its completion is no such fence
    TENSOR_LOAD = auto()  # tcgen05.ld


def join(clock: Clock, other: Clock) -> None:
    """Let `clock` know also what `other` knows."""
    for component, time in other.items():
        if clock.get(component, 0) < time:
            clock[component] = time


@dataclass
class Order:
    """What one thread, or a message between threads, knows to have happened.

    Attributes:
        seen: what happened before.
        proxied: what of it a `fence.proxy.async` has ordered between the two proxies.
        fenced: what of it a `tcgen05.fence::before_thread_sync` has handed to other threads.
    """

    seen: Clock = field(default_factory=dict)
    proxied: Clock = field(default_factory=dict)
    fenced: Clock = field(default_factory=dict)

    def acquire(self, other: Order) -> None:
        """Know also what a message carries."""
        join(self.seen, other.seen)
        join(self.proxied, other.proxied)
        join(self.fenced, other.fenced)

    def copy(self) -> Order:
        """The same knowledge, which then stays as it is."""
        return Order(dict(self.seen), dict(self.proxied), dict(self.fenced))


@dataclass
class Event:
    """An access to memory.

    Attributes:
        component: whose time it is told in.
        time: when it is over; none as long as that is not known.
        unit: which accesses.
        place: who executed which statement.
    """

    component: int
    time: int | None
    unit: Unit
    place: Place

    def within(self, clock: Clock) -> bool:
        """Whether the clock knows that it is over."""
        return self.time is not None and clock.get(self.component, 0) >= self.time


def shared_follows(order: Order, later: Event, earlier: Event) -> bool:
    """Whether an access to shared memory comes after another one.

    What threads wrote an asynchronous unit sees only after `fence.proxy.async`, and what an MMA
    read threads may write only after it; TMA's completion has such a fence within it.
    """
    if later.component == earlier.component and later.unit in {Unit.THREADS, Unit.MMA}:
        return True  # a warp's own order, and the order of a queue of MMAs
    crosses = (later.unit is Unit.THREADS) != (earlier.unit is Unit.THREADS)
    if crosses and earlier.unit is not Unit.TMA:
        return earlier.within(order.proxied)
    return earlier.within(order.seen)


def tensor_follows(tensor: Clock, later: Event, earlier: Event) -> bool:
    """Whether an access to tensor memory comes after another one.

    `tensor` is what a thread knows by its `tcgen05.fence::after_thread_sync` and its own waits.
    """
    if later.component == earlier.component and later.unit is Unit.MMA:
        return True
    return earlier.within(tensor)
