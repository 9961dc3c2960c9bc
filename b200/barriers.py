"""Barriers: mbarrier objects as PTX defines them, and barriers of whole warps."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from b200.order import Event, Order

LARGEST_COUNT = 2**20 - 1
"""Of arrivals and of transactions (PTX, "Size and alignment of mbarrier object")."""


class CountError(Exception):
    """A count that PTX does not allow."""


@dataclass
class MBarrier:
    """An mbarrier object.

    A phase ends when no arrival is pending and the transactions are balanced; then the next one
    begins with the count that the barrier was made with.

    Attributes:
        count: arrivals of each phase.
        made: the event of `mbarrier.init`.
        component: the time of loads that are counted here: the number of ended phases.
        pending: arrivals that the present phase waits for.
        transactions: bytes announced and not yet there; below 0 if they came first.
        ended: how many phases ended.
        gathered: what those who arrived in this phase know.
        visible: what the ended phases hand on.
        published: fences after the initialisation that show it to asynchronous units.
        foreign: arrivals out of other CTAs, and by asynchronous units.
    """

    count: int
    made: Event
    component: int
    pending: int = field(init=False)
    transactions: int = 0
    ended: int = 0
    gathered: Order = field(default_factory=Order)
    visible: Order = field(default_factory=Order)
    published: list[tuple[int, int]] = field(default_factory=list)
    foreign: dict[int, Event] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= self.count <= LARGEST_COUNT:
            raise CountError(f"an mbarrier takes 1 to {LARGEST_COUNT} arrivals, not {self.count}")
        self.pending = self.count

    def expect(self, size: int) -> None:
        """Announce `size` bytes: `expect-tx`."""
        if not 0 <= size <= LARGEST_COUNT:
            raise CountError(f"expect-tx takes 0 to {LARGEST_COUNT} bytes, not {size}")
        self._add(size)

    def complete(self, size: int) -> None:
        """`size` bytes are there: `complete-tx`."""
        self._add(-size)
        self._end()

    def _add(self, size: int) -> None:
        self.transactions += size
        if abs(self.transactions) > LARGEST_COUNT:
            raise CountError(f"the transaction count overflows: {self.transactions}")

    def arrive(self, count: int, order: Order) -> None:
        """`count` arrivals by one who knows `order`: `arrive-on`."""
        if not 1 <= count <= LARGEST_COUNT:
            raise CountError(f"arrive takes a count of 1 to {LARGEST_COUNT}, not {count}")
        if count > self.pending:
            raise CountError(
                f"{count} arrivals where the phase {self.ended} waits for {self.pending}"
            )
        self.pending -= count
        self.gathered.acquire(order)
        self._end()

    def _end(self) -> None:
        if self.pending or self.transactions:
            return
        self.ended += 1
        self.pending = self.count
        self.visible.acquire(self.gathered)
        self.visible.seen[self.component] = self.ended
        self.gathered = Order()

    def passed(self, parity: int) -> bool:
        """Whether `try_wait.parity` is true: the phase of that parity is not the present one."""
        return self.ended % 2 != parity

    def __str__(self) -> str:
        return (
            f"phase {self.ended} of parity {self.ended % 2} waits for {self.pending} of "
            f"{self.count} arrivals and {self.transactions} bytes"
        )


@dataclass
class ThreadBarrier:
    """A barrier of whole warps: `bar.sync`, or `barrier.cluster` with arrival and wait apart.

    Attributes:
        expected: how many warps meet.
        arrived: which of them are there.
        meetings: how many there were.
    """

    expected: int
    arrived: set[Hashable] = field(default_factory=set)
    meetings: int = 0
    gathered: Order = field(default_factory=Order)
    visible: Order = field(default_factory=Order)

    def arrive(self, who: Hashable, expected: int, order: Order) -> int:
        """A warp is there; the number of the meeting that it waits for."""
        if self.arrived and expected != self.expected:
            raise CountError(
                f"a barrier of {32 * self.expected} threads is used with {32 * expected}"
            )
        if who in self.arrived:
            raise CountError("a warp arrives twice before the others did")
        self.expected = expected
        self.arrived.add(who)
        self.gathered.acquire(order)
        meeting = self.meetings
        if len(self.arrived) == expected:
            self.meetings += 1
            self.arrived = set()
            self.visible.acquire(self.gathered)
            self.gathered = Order()
        return meeting

    def met(self, meeting: int) -> bool:
        """Whether all were there."""
        return self.meetings > meeting
