"""Who wrote and who read each cell of a memory last, to tell races."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from b200.order import Event

NOBODY = -1
Cells = NDArray[np.int64]
Follows = Callable[[Event], bool]


class Shadow:
    """The last writer of each cell, and its readers since, one of each component."""

    def __init__(self, cells: int, events: list[Event]) -> None:
        """`events` are those of the whole machine: cells keep their indices."""
        self.events = events
        self.writer = np.full(cells, NOBODY, np.int32)
        self.readers: dict[int, NDArray[np.int32]] = {}

    def read(self, cells: Cells, event: int, follows: Follows) -> Iterator[Event | None]:
        """Enter a read; those writers that it does not follow, and None for cells never written."""
        for writer in self.distinct(self.writer[cells]):
            if writer == NOBODY:
                yield None
            elif not follows(self.events[writer]):
                yield self.events[writer]
        component = self.events[event].component
        if component not in self.readers:
            self.readers[component] = np.full(len(self.writer), NOBODY, np.int32)
        self.readers[component][cells] = event

    def write(self, cells: Cells, event: int, follows: Follows) -> Iterator[Event]:
        """Enter a write; those that wrote or read the cells and that it does not follow."""
        for before in (self.writer, *self.readers.values()):
            for other in self.distinct(before[cells]):
                if other != NOBODY and not follows(self.events[other]):
                    yield self.events[other]
        for readers in self.readers.values():
            readers[cells] = NOBODY
        self.writer[cells] = event

    def forget(self, cells: Cells) -> None:
        """The cells hold nothing from now on."""
        self.writer[cells] = NOBODY
        for readers in self.readers.values():
            readers[cells] = NOBODY

    def last(self, cells: Cells | None = None) -> Iterator[Event]:
        """Each event that is still the last one of some cell, or of some of these."""
        for before in (self.writer, *self.readers.values()):
            for event in self.distinct(before if cells is None else before[cells]):
                if event != NOBODY:
                    yield self.events[event]

    @staticmethod
    def distinct(events: NDArray[np.int32]) -> list[int]:
        """The different events among them; mostly there is one."""
        if events.size and (events == events.flat[0]).all():
            return [int(events.flat[0])]
        return [int(event) for event in np.unique(events)]
