"""What programs tell the emulated GPU under the sanitizer: what streams and the host do.

`hip/note.c` has the other half.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum


class NoteKind(IntEnum):
    """What happened; `runtime.h` has the same numbers."""

    STREAM_MADE = 1
    STREAM_GONE = 2
    RECORDED = 3
    AWAITED = 4
    EVENT_GONE = 5
    HOST_AWAITED_EVENT = 6
    HOST_AWAITED_STREAM = 7
    HOST_AWAITED_DEVICE = 8
    EXCHANGED = 9
    COPIED = 10
    FILLED = 11
    ALLOCATED = 12
    FREED = 13
    ALLOCATED_ON = 14
    FREED_ON = 15
    WRITTEN = 16
    GRAPH_BEGINS = 17
    NODE_BEGINS = 18
    NODE_AFTER = 19
    GRAPH_ENDS = 20
    RESET = 21
    TOUCHED = 22


@dataclass(frozen=True)
class Region:
    """Bytes, rows of them a pitch apart, and slices of these."""

    start: int
    width: int
    rows: int
    pitch: int
    slices: int
    slice: int

    def spans(self) -> Iterator[tuple[int, int]]:
        """Where its bytes begin and end, as few pieces as they are."""
        if self.rows > 1 and self.pitch == self.width:
            whole = Region(self.start, self.width * self.rows, 1, 0, self.slices, self.slice)
            yield from whole.spans()
            return
        for z in range(self.slices if self.width else 0):
            for y in range(self.rows):
                start = self.start + z * self.slice + y * self.pitch
                yield start, start + self.width


@dataclass(frozen=True)
class Note:
    """One thing that happened, on a stream of a device."""

    kind: NoteKind
    device: int
    stream: int
    other: int
    to: Region
    source: Region


_NOTE = struct.Struct("<IiQQ6Q6Q")


def read_note(body: bytes) -> Note:
    """As the library sends it. Raises ValueError for a kind that there is not."""
    kind, device, stream, other, *regions = _NOTE.unpack(body)
    return Note(NoteKind(kind), device, stream, other, Region(*regions[:6]), Region(*regions[6:]))
