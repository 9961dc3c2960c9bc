"""Which bytes of global memory a launch has accessed, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.machine.bits import Mask
from mfmadsl.emulator.machine.memory import Addresses
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.sanitizer.reserved import reserved

READ, WRITE, SHARED_READ, SHARED_WRITE = 1, 2, 4, 8
"""Kinds of accesses, as bits: plain ones, and those that others may meet, such as atomics."""

_PAGE_BITS = 12
_STEPS = {8: np.uint64, 4: np.uint32, 2: np.uint16, 1: np.uint8}
_EVERY_BYTE = 0x0101_0101_0101_0101


class MemoryWatch(Protocol):
    """Is told of each access to global memory, before it takes place."""

    def accesses(
        self, waves: Waves, mask: Mask | None, offsets: Addresses, size: int, kind: int
    ) -> None:
        """Lanes access so many bytes each; those of `mask`, or all, one after the other."""

    def scalar_accesses(self, waves: Waves, offsets: Addresses, size: int) -> None:
        """Waves load into scalar registers."""


@dataclass(frozen=True)
class Spans:
    """Bytes and how they were accessed: places from `starts` to `ends`, which do not overlap."""

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, pieces: list[tuple[int, int]], kind: int) -> Spans:
        """Pieces that are accessed in the same way."""
        places = np.array(sorted(pieces), np.int64).reshape(-1, 2)
        starts, ends = np.ascontiguousarray(places.T)
        return cls(starts, ends, np.full(len(starts), kind, np.uint8))

    def some(self, kinds: int) -> Spans:
        """Those that were accessed in one of some ways."""
        chosen = self.kinds & np.uint8(kinds) != 0
        return Spans(self.starts[chosen], self.ends[chosen], self.kinds[chosen])

    def without(self, start: int, end: int) -> Spans:
        """Those outside of a range, which is that of whole allocations."""
        chosen = (self.ends <= start) | (self.starts >= end)
        return Spans(self.starts[chosen], self.ends[chosen], self.kinds[chosen])

    def hit(self, places: Addresses, size: Any) -> Mask:
        """Which of some accesses meet any of these; `size` is that of all, or one for each."""
        if not len(self.starts):
            return np.zeros(places.shape, np.bool_)
        last = np.searchsorted(self.starts, places + size, "left") - 1
        hit: Mask = (last >= 0) & (self.ends[last] > places)
        return hit


class Footprint:
    """Collects accesses to a memory that ends at an offset."""

    def __init__(self, end: int) -> None:
        pages = (end >> _PAGE_BITS) + 2
        self._kinds = reserved(pages << _PAGE_BITS, np.uint8)
        self._views: dict[int, npt.NDArray[Any]] = {
            step: self._kinds.view(of) for step, of in _STEPS.items()
        }
        self._pages = reserved(pages, np.bool_)

    def note(self, offsets: Addresses, size: int, kind: int) -> None:
        """Lanes access so many bytes each."""
        flat = offsets.reshape(-1)
        if not flat.size:
            return
        bits = int(np.bitwise_or.reduce(flat)) | size
        step = next(each for each in _STEPS if bits % each == 0)
        cells, first = self._views[step], flat // step
        pattern = np.array(kind * _EVERY_BYTE & ((1 << 8 * step) - 1), _STEPS[step])
        for i in range(size // step):
            cells[first + i] |= pattern
        self._pages[flat >> _PAGE_BITS] = True
        self._pages[(flat + size - 1) >> _PAGE_BITS] = True

    def spans(self) -> Spans:
        """What has been accessed."""
        touched = np.flatnonzero(self._pages)
        runs = np.split(touched, np.flatnonzero(np.diff(touched) != 1) + 1) if len(touched) else []
        found = [self._run(int(run[0]), int(run[-1]) + 1) for run in runs]
        if not found:
            return Spans.of([], 0)
        starts, ends, kinds = (np.concatenate(each) for each in zip(*found, strict=True))
        return Spans(starts, ends, kinds)

    def _run(self, first: int, last: int) -> tuple[npt.NDArray[Any], ...]:
        """The pieces within some pages that follow each other."""
        base = first << _PAGE_BITS
        kinds = self._kinds[base : last << _PAGE_BITS]
        changes = np.flatnonzero(kinds[1:] != kinds[:-1]) + 1
        starts, ends = np.concatenate([[0], changes]), np.concatenate([changes, [len(kinds)]])
        used = kinds[starts] != 0
        return starts[used] + base, ends[used] + base, kinds[starts[used]]
