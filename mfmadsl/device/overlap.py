"""Work on a program's memory that nothing orders: what one kernel, copy or fill meets of others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.machine.bits import Mask
from mfmadsl.emulator.machine.memory import Addresses
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.sanitizer.footprint import (
    READ,
    SHARED_READ,
    SHARED_WRITE,
    WRITE,
    Footprint,
    Spans,
)

_PAGE = 4096  # bytes
_WRITES, _SHARED = WRITE | SHARED_WRITE, SHARED_READ | SHARED_WRITE
NOT_ORDERED = "no event, stream or wait of the host orders the two"


@dataclass(frozen=True)
class StreamWork:
    """What was done, in words, and which bytes it has accessed; places are offsets in memory."""

    told: str
    spans: Spans

    def without(self, start: int, end: int) -> StreamWork:
        """The same but for what is allocated anew."""
        return StreamWork(self.told, self.spans.without(start, end))

    @cached_property
    def _by_kinds(self) -> dict[int, Spans]:
        return {}

    def some(self, kinds: int) -> Spans:
        """The bytes that it has accessed in one of some ways."""
        if kinds not in self._by_kinds:
            self._by_kinds[kinds] = self.spans.some(kinds)
        return self._by_kinds[kinds]

    def verb(self, place: int) -> str:
        """What it does with a byte."""
        return "writes" if self.some(_WRITES).hit(np.array([place]), 1).any() else "reads"


def clashing(kind: int, several: bool) -> int:
    """The kinds of accesses that must not meet one of a kind.

    Where a device has one L2, the store of an atomic variable looks like any other.
    """
    found = 0
    if kind & READ:
        found |= _WRITES
    if kind & WRITE:
        found |= READ | WRITE | (_SHARED if several else 0)
    if kind & SHARED_READ and several:
        found |= WRITE
    if kind & SHARED_WRITE:
        found |= READ | (WRITE if several else 0)
    return found


@dataclass(frozen=True)
class Meeting:
    """Which of some accesses meets which other work, and where."""

    at: int
    place: int
    work: StreamWork


def met(
    others: list[StreamWork], places: npt.NDArray[np.int64], size: Any, kind: int, several: bool
) -> Meeting | None:
    """The first work that accesses meet and must not; `size` is that of all, or one for each."""
    for work in others:
        theirs = work.some(clashing(kind, several))
        hit = theirs.hit(places, size)
        if hit.any():
            at = int(np.argmax(hit))
            end = places[at] + (size if np.ndim(size) == 0 else size[at])
            last = int(np.searchsorted(theirs.starts, end, "left")) - 1
            return Meeting(at, max(int(theirs.starts[last]), int(places[at])), work)
    return None


class OverlapWatch:
    """Watches a launch: notes what it accesses, and tells where that meets other work.

    Two that meet in words that both may share, such as locks, may order each other by these: what
    else they do is not told.
    """

    def __init__(self, others: list[StreamWork], several: bool) -> None:
        self._others, self._several = others, several
        self._footprint: Footprint | None = None

    def spans(self) -> Spans:
        """What the launch has accessed."""
        return Spans.of([], 0) if self._footprint is None else self._footprint.spans()

    def _note(self, waves: Waves, offsets: Addresses, size: int, kind: int) -> None:
        if self._footprint is None:
            self._footprint = Footprint(waves.memory.end)
        self._footprint.note(offsets, size, kind)

    def accesses(
        self, waves: Waves, mask: Mask | None, offsets: Addresses, size: int, kind: int
    ) -> None:
        """Lanes access global memory."""
        self._note(waves, offsets, size, kind)
        if not self._others:
            return
        flat = offsets.reshape(-1)
        if kind & SHARED_READ:
            self._others = [
                each for each in self._others if not each.some(SHARED_WRITE).hit(flat, size).any()
            ]
        meeting = met(self._others, flat, size, kind, self._several)
        if meeting is not None:
            at = np.zeros(len(flat), np.bool_)
            at[meeting.at] = True
            self._tell(waves, meeting, kind, waves.first_lane(mask, at))

    def scalar_accesses(self, waves: Waves, offsets: Addresses, size: int) -> None:
        """Waves load into scalar registers."""
        # LLVM loads four words where it knows that three may be loaded.
        used = 12 if size == 16 else size
        self._note(waves, offsets, used, READ)
        meeting = met(self._others, offsets.reshape(-1), used, READ, self._several)
        if meeting is not None:
            wave = meeting.at if offsets.size == waves.count else 0
            self._tell(waves, meeting, READ, (wave, None))

    @staticmethod
    def _tell(waves: Waves, meeting: Meeting, kind: int, who: tuple[int, int | None]) -> None:
        where = waves.memory.describe(meeting.place)
        waves.fault("race", told_meeting(meeting, kind, where), *who)


def told_meeting(meeting: Meeting, kind: int, where: str) -> str:
    """What is wrong, in words."""
    work, verb = meeting.work, "writes" if kind & _WRITES else "reads"
    return f"{verb} {where}; {work.told} {work.verb(meeting.place)} it, and {NOT_ORDERED}"


def whole_pages(spans: Spans) -> list[tuple[int, int]]:
    """Those that lie within accessed bytes, from and to."""
    firsts, lasts = -(-spans.starts // _PAGE) * _PAGE, spans.ends // _PAGE * _PAGE
    pairs = zip(firsts.tolist(), lasts.tolist(), strict=True)
    return [(first, last) for first, last in pairs if first < last]
