"""The state of a launch: clusters of CTAs, their memories, and their warps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from b200.asynchronous import Asynchronous, BulkGroups, Queue
from b200.barriers import MBarrier, ThreadBarrier
from b200.order import Clock, Event, Order, Unit
from b200.place import Place, Statement
from b200.report import Fault, Kind
from b200.shadow import Shadow

LANES = 32  # threads of a warp
WARPS = 4  # of a warpgroup
WORD = 4  # bytes of shared memory of which one is told from another
LARGEST_SHARED = 227 * 1024  # bytes that a CTA may have
TENSOR_LANES, TENSOR_COLUMNS = 128, 512  # of 32 bits each
RANK_BIT = 24  # above it an address of shared memory tells the CTA's rank in the cluster
MOST_FAULTS = 32
WARP = r"CTA \d+( warp \d+)?"  # as faults name it

Value = int | float | bool | NDArray[np.generic]
"""Of an expression: one for the whole warp, or one for each lane."""


class HaltError(Exception):
    """The execution cannot go on: what comes after the last fault would have no meaning."""


@dataclass(frozen=True)
class Pause:
    """Where another warp may take over: at once, or when `ready` holds."""

    ready: Callable[[], bool] | None = None
    what: Callable[[], str] = str
    place: Place | None = None


Run = Iterator[Pause]
Step = Callable[["Warp"], Run]
"""A statement, executed by a warp."""


@dataclass
class Registers:
    """A buffer of each thread of a warp; `loading` marks what a `tcgen05.ld` has yet to bring."""

    values: NDArray[np.generic]
    loading: NDArray[np.bool_]


class Machine:
    """What all CTAs share."""

    def __init__(self, late: bool, leader: int) -> None:
        """`leader` is the lane that `elect.sync` elects."""
        self.asynchronous = Asynchronous(late)
        self.leader = leader
        self.faults: dict[tuple[Kind, str, str], Fault] = {}
        self.events: list[Event] = []
        self.components = 0
        self.counts: Counter[str] = Counter()
        self.arguments: dict[int, NDArray[np.generic]] = {}  # element after element

    def component(self) -> int:
        """A new component of the clocks."""
        self.components += 1
        return self.components

    def event(self, component: int, time: int | None, unit: Unit, place: Place) -> int:
        """Enter an event; its number."""
        self.events.append(Event(component, time, unit, place))
        return len(self.events) - 1

    def fault(self, kind: Kind, message: str, place: Place | str) -> None:
        """Enter a fault, and go on if that has a meaning. By other warps it is entered once."""
        fault = Fault(kind, message, str(place))
        who = "" if kind is Kind.DEADLOCK else WARP
        self.faults.setdefault(
            (kind, re.sub(who, "", message), re.sub(who, "", fault.where)), fault
        )
        if len(self.faults) >= MOST_FAULTS:
            raise HaltError

    def stop(self, kind: Kind, message: str, place: Place | str) -> HaltError:
        """Enter a fault after which nothing has a meaning; raise what this returns."""
        self.fault(kind, message, place)
        return HaltError()


class Cta:
    """A CTA: shared memory, tensor memory, barriers, and the warps that run."""

    def __init__(self, machine: Machine, cluster: Cluster, number: int, shared: int) -> None:
        """CTA `number` of the grid with `shared` bytes, all of whose bits are set."""
        self.machine = machine
        self.cluster = cluster
        self.number = number
        self.rank = len(cluster.ctas)
        self.size = shared
        self.shared = np.full((shared + 15) // 16 * 16, 0xFF, np.uint8)
        self.shared_shadow = Shadow(len(self.shared) // WORD, machine.events)
        self.tensor = np.full((TENSOR_LANES * TENSOR_COLUMNS,), np.nan, np.float32)
        self.tensor_shadow = Shadow(self.tensor.size, machine.events)
        self.allocated: dict[int, tuple[int, int]] = {}  # columns and event by the first column
        self.relinquished = False
        self.barriers: dict[int, MBarrier] = {}  # by the byte where they are
        self.named: dict[int, ThreadBarrier] = {}
        self.warps: list[Warp] = []
        self.exited = False

    def __str__(self) -> str:
        return f"CTA {self.number}"


@dataclass
class Cluster:
    """CTAs that see each other's shared memory."""

    number: int
    ctas: list[Cta] = field(default_factory=list)
    barrier: ThreadBarrier = field(default_factory=lambda: ThreadBarrier(0))


class Warp:
    """Thirty-two threads that go the same way, of which `active` are those on the present one."""

    def __init__(self, cta: Cta, rank: int) -> None:
        self.cta = cta
        self.machine = cta.machine
        self.rank = rank
        self.active = np.ones(LANES, np.bool_)
        self.component = self.machine.component()
        self.order = Order()
        self.tensor: Clock = {}
        self.values: dict[int, Value] = {}  # of variables
        self.registers: dict[int, Registers] = {}
        self.bases: dict[int, int] = {}  # addresses of buffers in shared and tensor memory
        self.loads = self.machine.component()  # the time of `tcgen05.ld`
        self.loaded = 0
        self.arriving: list[Callable[[], None]] = []  # what `tcgen05.wait::ld` waits for
        self.queues: dict[int, tuple[Queue, int]] = {}  # of MMAs: by lane, with its component
        self.issued: Counter[int] = Counter()  # MMAs and commits of each lane
        self.bulk: dict[int, BulkGroups] = {}  # by lane
        self.meeting: int | None = None  # of the cluster, that was arrived at and not waited for

    def __str__(self) -> str:
        return f"{self.cta} warp {self.rank}"

    @property
    def lanes(self) -> NDArray[np.int64]:
        """The active ones."""
        return np.flatnonzero(self.active)

    def place(self, statement: Statement) -> Place:
        """This warp at a statement."""
        return Place(str(self), statement)

    def tick(self) -> int:
        """The time of the warp's next access."""
        now = self.order.seen.get(self.component, 0) + 1
        self.order.seen[self.component] = now
        return now

    def access(self, place: Place) -> int:
        """A new event by the warp's threads."""
        return self.machine.event(self.component, self.tick(), Unit.THREADS, place)

    def mma_queue(self, lane: int) -> tuple[Queue, int]:
        """The queue of MMAs that a lane issues, and its component."""
        if lane not in self.queues:
            self.queues[lane] = Queue(), self.machine.component()
        return self.queues[lane]

    def bulk_groups(self, lane: int) -> BulkGroups:
        """A lane's groups of TMA stores."""
        if lane not in self.bulk:
            self.bulk[lane] = BulkGroups(self.machine.component())
        return self.bulk[lane]

    def whole(self, place: Place, what: str) -> None:
        """What all threads of a warp do together must not be done by some.

        Raises:
            HaltError: a lane is not active.
        """
        if not self.active.all():
            raise self.machine.stop(
                Kind.DIVERGENCE,
                f"{what} takes a whole warp, and {int(self.active.sum())} threads of it are here",
                place,
            )

    def uniform(self, value: Value, place: Place, what: str) -> int:
        """One integer for all active lanes.

        Raises:
            HaltError: they differ.
        """
        if isinstance(value, np.ndarray):
            found = value[self.active]
            if (found != found[0]).any():
                raise self.machine.stop(
                    Kind.DIVERGENCE, f"{what} differs between threads of a warp", place
                )
            return int(found[0])
        return int(value)
