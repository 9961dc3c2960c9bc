"""What goes on beside the threads: as late as it may, or as early as it can."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

Action = Callable[[], None]


class Queue:
    """Operations that one after the other come to their end."""

    def __init__(self) -> None:
        self.actions: deque[Action] = deque()


class Asynchronous:
    """All that was issued and has not ended.

    In the late mode an operation ends only when no thread can go on, in the early one at once.
    """

    def __init__(self, late: bool) -> None:
        self.late = late
        self.queues: list[Queue] = []

    def submit(self, queue: Queue, action: Action) -> None:
        """`action` is what the end of the operation does."""
        if not self.late:
            action()
            return
        if not queue.actions:
            self.queues.append(queue)
        queue.actions.append(action)

    def end_one(self, choose: Callable[[int], int]) -> bool:
        """Let one operation end: the first of a queue that `choose` picks. False if there is none.

        Args:
            choose: a number below its argument.
        """
        if not self.queues:
            return False
        position = choose(len(self.queues))
        queue = self.queues[position]
        queue.actions.popleft()()
        if not queue.actions:
            self.queues.remove(queue)
        return True


@dataclass
class Store:
    """A TMA store: it reads shared memory when `run` is called, at the latest in a wait for it."""

    run: Action
    set_time: Callable[[int], None]


@dataclass
class BulkGroups:
    """A thread's groups of TMA stores.

    Attributes:
        component: the time of these stores: the number of their group.
        open: stores of no group yet.
        groups: those committed whose reading nobody waited for.
        committed: how many groups there were.
    """

    component: int
    open: list[Store] = field(default_factory=list)
    groups: deque[list[Store]] = field(default_factory=deque)
    committed: int = 0

    def commit(self) -> None:
        """`cp.async.bulk.commit_group`."""
        self.committed += 1
        for store in self.open:
            store.set_time(self.committed)
        self.groups.append(self.open)
        self.open = []

    def wait(self, newest: int) -> int:
        """Let all but the `newest` groups end; up to which group they then have."""
        while len(self.groups) > newest:
            for store in self.groups.popleft():
                store.run()
        return self.committed - len(self.groups)
