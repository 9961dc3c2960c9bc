"""What a program has had done on the device, and the host has not waited for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mfmadsl.device.notes import Note, NoteKind, Region
from mfmadsl.device.order import Key, StreamOrder, key_of
from mfmadsl.device.overlap import OverlapWatch, StreamWork, met, told_meeting, whole_pages
from mfmadsl.device.unwritten import Unwritten
from mfmadsl.emulator.error import Fault
from mfmadsl.emulator.machine.memory import Bytes
from mfmadsl.emulator.sanitizer.footprint import READ, SHARED_WRITE, WRITE, Spans

_MOST = 4096  # pieces of work that are kept
_MOST_GUARDED = 256  # as `hip/guard.c` has it
_IN_ORDER = {
    NoteKind.COPIED: "a copy",
    NoteKind.FILLED: "a fill",
    NoteKind.ALLOCATED_ON: "an allocation",
    NoteKind.FREED_ON: "a free",
}


class History:
    """Of one program. `start` is the address of its memory, whose bytes are `content`; `tell` is
    given what calls of HIP do wrong."""

    def __init__(
        self, content: Bytes, start: int, several: bool, tell: Callable[[Fault], None]
    ) -> None:
        self.unwritten = Unwritten(content)
        self._start, self._size = start, len(content)
        self._several, self._tell = several, tell
        self._order = StreamOrder()
        self._work: dict[int, StreamWork] = {}
        self._names: dict[Key, str] = {}
        self._allocated: dict[int, int] = {}
        self._hosts: dict[int, int] = {}  # what the host may look into
        self._told_touches: set[int] = set()  # work of which that is told already

    # What is told.

    def happened(self, note: Note) -> None:
        """Learn from what is told, and look at copies, fills and frees."""
        if note.kind is NoteKind.STREAM_MADE:
            self._names[key_of(note.device, note.stream)] = f"stream {len(self._names) + 1}"
        if note.kind in _IN_ORDER:
            self._works(note, _IN_ORDER[note.kind])
        elif note.kind in (NoteKind.ALLOCATED, NoteKind.FREED, NoteKind.WRITTEN):
            self._changes(note)
        elif note.kind is NoteKind.TOUCHED:
            self._touched(note.to.start - self._start)
        elif note.kind is NoteKind.RESET:
            for address, size in self._allocated.items():
                self.unwritten.define(address - self._start, size)
            self._order, self._work = StreamOrder(), {}
            self._allocated, self._hosts = {}, {}
        else:
            self._order.happened(note)
        self._forget()

    def written(self, address: int, size: int) -> None:
        """The emulated GPU itself has put something there."""
        self.unwritten.define(address - self._start, size)

    def _changes(self, note: Note) -> None:
        """Memory is allocated, freed, or written by the host."""
        region = note.to
        offset, size = region.start - self._start, region.width
        if note.kind is NoteKind.WRITTEN:
            self.unwritten.define(offset, size)
            if note.other:  # and not by a stream
                self._hosts[offset] = size
            return
        self._work = {n: w.without(offset, offset + size) for n, w in self._work.items()}
        self._hosts.pop(offset, None)
        if note.kind is NoteKind.ALLOCATED:
            self._allocated[region.start] = size
            self.unwritten.allocate(offset, size)
        elif self._allocated.pop(region.start, None):
            self.unwritten.define(offset, size)

    def guarded(self) -> list[tuple[int, int, bool]]:
        """Whole pages that the host must not write to now, and whether it may read them."""
        found = {
            (first + self._start, last + self._start, readable)
            for work in (self._others(0) if self._hosts else ())
            for kind, readable in ((WRITE, False), (READ, True))
            for first, last in whole_pages(work.some(kind))
            if any(start <= first < start + size for start, size in self._hosts.items())
        }
        apart: list[tuple[int, int, bool]] = []
        for each in sorted(found):
            if not apart or each[0] >= apart[-1][1]:
                apart.append(each)
        return apart[:_MOST_GUARDED]

    def _touched(self, offset: int) -> None:
        """The host itself has accessed what it must not now."""
        here = np.array([offset])
        for number, work in self._work.items():
            early = not self._order.host >> number & 1 and number not in self._told_touches
            if early and work.spans.hit(here, 1).any():
                self._told_touches.add(number)
                message = (
                    f"the host accesses {self._place(offset)}; {work.told} {work.verb(offset)} it, "
                    "and the host has not waited for that"
                )
                self._tell(Fault("race", message))
                return

    def _works(self, note: Note, what: str) -> None:
        key = key_of(note.device, note.stream)
        reads = _within(note.source, self._start, self._size)
        writes = _within(note.to, self._start, self._size)
        number, before = self._order.works(key)
        told = f"{what} on {self._name(key)}"
        for pieces, kind in ((reads, READ), (writes, WRITE)):
            self._look(told, pieces, kind, before)
        if note.kind is NoteKind.COPIED:
            self._copied(note)
        elif note.kind is NoteKind.FILLED:
            for first, last in writes:
                self.unwritten.define(first, last - first)
        if note.other and note.kind in (NoteKind.COPIED, NoteKind.FILLED):
            self._order.host |= before | 1 << number
        self._work[number] = StreamWork(told, _both(reads, writes))

    def _look(self, told: str, pieces: list[tuple[int, int]], kind: int, before: int) -> None:
        """Tell of a call that meets what nothing orders it with."""
        spans = Spans.of(pieces, kind)
        sizes = spans.ends - spans.starts
        meeting = met(self._others(before), spans.starts, sizes, kind, self._several)
        if meeting is not None:
            message = told_meeting(meeting, kind, self._place(meeting.place))
            self._tell(Fault("race", f"{told} {message}"))

    def _copied(self, note: Note) -> None:
        """What is undefined goes with a copy within memory; what the host brings is defined."""
        inside = self._start <= note.source.start < self._start + self._size
        sources = list(note.source.spans()) if inside else []
        targets = [
            (first - self._start, last - first)
            for first, last in note.to.spans()
            if self._start <= first < self._start + self._size
        ]
        if len(sources) == len(targets):
            for (to, size), (first, _) in zip(targets, sources, strict=True):
                self.unwritten.copy(to, first - self._start, size)
        else:
            for to, size in targets:
                self.unwritten.define(to, size)

    # Launches.

    def begins(self, name: str, device: int, stream: int) -> WatchedLaunch:
        """A kernel is launched: who watches it."""
        key = key_of(device, stream)
        number, before = self._order.works(key)
        told = f"kernel `{name}` on {self._name(key)}"
        return WatchedLaunch(number, told, OverlapWatch(self._others(before), self._several))

    def ends(self, launched: WatchedLaunch) -> None:
        """A kernel has run. The host may have seen what it shares with the host on the way."""
        spans = launched.watch.spans()
        shared = spans.some(SHARED_WRITE)
        for offset, size in self._hosts.items():
            if len(shared.starts) != len(shared.without(offset, offset + size).starts):
                self._order.host |= self._order.all_done()
                break
        self._work[launched.number] = StreamWork(launched.told, spans)
        self._forget()

    # Memory of all this.

    def _others(self, before: int) -> list[StreamWork]:
        """What is neither done before, nor known to be."""
        return [w for n, w in self._work.items() if not (before | self._order.host) >> n & 1]

    def _forget(self) -> None:
        """What the host has waited for comes before all that follows."""
        kept = {n: w for n, w in self._work.items() if not self._order.host >> n & 1}
        for number in list(kept)[:-_MOST]:
            del kept[number]
        self._told_touches &= kept.keys()
        if len(kept) != len(self._work) or not kept:
            self._order.forget(sum(1 << number for number in kept))
        self._work = kept

    def _name(self, key: Key) -> str:
        return self._names.get(key, "the stream of all" if not key[1] else "the thread's stream")

    def _place(self, offset: int) -> str:
        address = offset + self._start
        hosts = ((start + self._start, size) for start, size in self._hosts.items())
        for start, size in (*self._allocated.items(), *hosts):
            if start <= address < start + size:
                return f"offset {address - start} of the allocation at {start:#x}"
        return f"what is at {address:#x}"


@dataclass(frozen=True)
class WatchedLaunch:
    """A launch that is watched: its number, what it is in words, and who watches."""

    number: int
    told: str
    watch: OverlapWatch


def _within(region: Region, start: int, size: int) -> list[tuple[int, int]]:
    """The pieces of a region that lie in memory, as offsets."""
    if not start <= region.start < start + size:
        return []
    return [(first - start, last - start) for first, last in region.spans()]


def _both(reads: list[tuple[int, int]], writes: list[tuple[int, int]]) -> Spans:
    both = [Spans.of(reads, READ), Spans.of(writes, WRITE)]
    starts, ends, kinds = (
        np.concatenate([getattr(each, name) for each in both])
        for name in ("starts", "ends", "kinds")
    )
    order = np.argsort(starts, kind="stable")
    return Spans(starts[order], ends[order], kinds[order])
