"""Global memory and LDS: bytes, addressed by many lanes at once, with their bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.text.data import CODE, DataSection
from mfmadsl.error import MfmadslError

Addresses = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]

_FIRST_ADDRESS = 0x7F00_0000_0000  # far above 32 bits, so that a truncated pointer is caught
_GUARD = 4096  # bytes between two segments that belong to nobody


class AccessError(MfmadslError):
    """Some accesses of an instruction are not possible; `bad` says which, in their order."""

    def __init__(self, kind: str, message: str, bad: npt.NDArray[np.bool_]) -> None:
        super().__init__(message)
        self.kind, self.bad = kind, bad


@dataclass(frozen=True)
class Segment:
    """One allocation: an argument's array, or the kernel argument block."""

    name: str
    address: int
    size: int


def zeros(size: int) -> Bytes:
    """So many bytes and up to 15 more, as a `ByteStore` holds them."""
    return np.zeros(-(-size // 16) * 16, np.uint8)


class Changes:
    """Whether a store has changed what was in memory, since somebody looked."""

    def __init__(self) -> None:
        self.seen = False


class ByteStore:
    """Bytes that lanes load from and store to. `changes`, where there is one, learns of changes."""

    changes: Changes | None = None

    def __init__(self, content: Bytes) -> None:
        """`content` is the memory itself; its size is a multiple of 16."""
        self._bytes = content
        self._halves = self._bytes.view(np.uint16)
        self._words = self._bytes.view(np.uint32)

    @property
    def address(self) -> int:
        """Where its first byte lies on this machine."""
        return int(self._bytes.ctypes.data)

    def content_of_all(self) -> Bytes:
        """All bytes."""
        return self._bytes

    @property
    def size_in_bytes(self) -> int:
        """Bytes that the store holds."""
        return self._bytes.size

    def fill(self, first: int, last: int | None, byte: int) -> None:
        """Write one byte everywhere between two offsets."""
        self._bytes[first:last] = byte

    def load_words(self, offsets: Addresses, count: int) -> Words:
        """`count` words from each offset, of shape (count, *offsets.shape)."""
        if _off(offsets, 4).any():
            return np.stack([self._gathered(offsets + 4 * i, 4) for i in range(count)])
        first = offsets >> 2
        return np.stack([self._words[first + i] for i in range(count)])

    def store_words(self, offsets: Addresses, values: Words) -> None:
        """`values[i]` into word i from each offset; values has shape (count, *offsets.shape)."""
        if _off(offsets, 4).any():
            for i, word in enumerate(values):
                self._scatter(offsets + 4 * i, word, 4)
            return
        first = offsets >> 2
        for i, word in enumerate(values):
            self._put(self._words, first + i, word)

    def load_narrow(self, offsets: Addresses, width: int) -> Words:
        """One byte or two from each offset, zero-extended."""
        if width == 1:
            return self._bytes[offsets].astype(np.uint32)
        if _off(offsets, 2).any():
            return self._gathered(offsets, 2)
        return self._halves[offsets >> 1].astype(np.uint32)

    def store_narrow(self, offsets: Addresses, values: Words, width: int) -> None:
        """Write the low byte, or the low two, of each value at its offset."""
        if width == 1:
            self._put(self._bytes, offsets, values.astype(np.uint8))
        elif _off(offsets, 2).any():
            self._scatter(offsets, values, 2)
        else:
            self._put(self._halves, offsets >> 1, values.astype(np.uint16))

    def _gathered(self, offsets: Addresses, width: int) -> Words:
        found = np.zeros(offsets.shape, np.uint32)
        for i in range(width):
            found |= self._bytes[offsets + i].astype(np.uint32) << np.uint32(8 * i)
        return found

    def _scatter(self, offsets: Addresses, values: Words, width: int) -> None:
        for i in range(width):
            byte = (values >> np.uint32(8 * i)).astype(np.uint8)
            self._put(self._bytes, offsets + i, byte)

    def _put(self, cells: npt.NDArray[Any], places: Addresses, values: npt.NDArray[Any]) -> None:
        if self.changes is not None and not self.changes.seen:
            self.changes.seen = bool((cells[places] != values).any())
        cells[places] = values


class Host(Protocol):
    """Who answers the calls of kernels, by a part of memory from an offset on."""

    said: str

    @property
    def start(self) -> int:
        """Where that part begins; nothing else lies behind it."""

    def serve(self) -> None:
        """Answer what has come."""


@dataclass(frozen=True)
class SegmentTable:
    """The segments of an address space in order, for native code: where they start and end, and
    whether they must not be written."""

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    protected: npt.NDArray[np.uint8]


class GlobalMemory(ByteStore):
    """Segments in one address space, in the order of their addresses, with guards between them.

    `content` begins at `first_address`. `protected` says of segments that must not be
    written what they are, by their names. What lies further than `reach` behind the end of one is
    `elsewhere`; `freed` has what was allocated before, as (address, bytes).
    """

    host: Host | None = None

    def __init__(
        self,
        content: Bytes,
        first_address: int,
        segments: Sequence[Segment],
        protected: Mapping[str, str] | None = None,
        elsewhere: str = "far from every argument",
        reach: int = 1 << 32,
        freed: Sequence[tuple[int, int]] = (),
    ) -> None:
        super().__init__(content)
        self._elsewhere, self._reach, self._freed = elsewhere, reach, freed
        self.segments = tuple(segments)
        self.first_address = first_address
        self._starts = np.array([s.address for s in segments], np.int64)
        self._ends = np.array([s.address + s.size for s in segments], np.int64)
        self._protected = [
            (segment, reason)
            for segment in segments
            if (reason := (protected or {}).get(segment.name))
        ]
        names = {segment.name for segment, _ in self._protected}
        flags = np.array([segment.name in names for segment in segments], np.uint8)
        self.table = SegmentTable(self._starts, self._ends, flags)

    @classmethod
    def of_arrays(
        cls,
        arrays: Sequence[tuple[str, Bytes]],
        protected: Mapping[str, str] | None = None,
        data: Sequence[DataSection] = (),
        behind: Sequence[tuple[str, int]] = (),
    ) -> GlobalMemory:
        """Copies of the arrays, a segment each, behind the data of a program, at its addresses;
        zeros `behind` them, by names and sizes."""
        segments = [Segment(each.name, each.address, len(each.content)) for each in data]
        first = CODE if data else _FIRST_ADDRESS
        end = max((s.address + s.size for s in segments), default=first) - first
        offset = -(-end // _GUARD) * _GUARD + _GUARD
        for name, content in arrays:
            segments.append(Segment(name, first + offset, content.size))
            offset += -(-content.size // _GUARD) * _GUARD + _GUARD
        given = len(segments)
        for name, size in behind:
            segments.append(Segment(name, first + offset, size))
            offset += -(-size // _GUARD) * _GUARD + _GUARD
        memory = cls(zeros(offset), first, segments, protected)
        contents = [np.frombuffer(each.content, np.uint8) for each in data]
        contents += [content for _, content in arrays]
        for segment, content in zip(segments[:given], contents, strict=True):
            memory.content(segment)[:] = content
        return memory

    def store_words(self, offsets: Addresses, values: Words) -> None:
        """Like that of `ByteStore`. Raises EmulationError if a segment is protected."""
        if self._protected:
            self._check_writes(offsets)
        super().store_words(offsets, values)

    def store_narrow(self, offsets: Addresses, values: Words, width: int) -> None:
        """Like that of `ByteStore`. Raises EmulationError if a segment is protected."""
        if self._protected:
            self._check_writes(offsets)
        super().store_narrow(offsets, values, width)

    def _check_writes(self, offsets: Addresses) -> None:
        for segment, reason in self._protected:
            start = self.offset_of(segment)
            if ((offsets >= start) & (offsets < start + segment.size)).any():
                raise EmulationError(f"writes to {reason}", kind="read-only")

    @property
    def end(self) -> int:
        """The offset behind the last segment: what lies there is nobody's."""
        return int(self._ends.max(initial=self.first_address)) - self.first_address

    def content(self, segment: Segment) -> Bytes:
        """The bytes of an argument."""
        start = self.offset_of(segment)
        return self._bytes[start : start + segment.size]

    def offset_of(self, segment: Segment) -> int:
        """Where an argument begins in the store."""
        return segment.address - self.first_address

    def describe(self, offset: int) -> str:
        """Where an offset in this memory lies."""
        return self._describe(offset + self.first_address)

    def offsets(
        self, addresses: npt.NDArray[np.uint64], width: int, alignment: int = 1
    ) -> Addresses:
        """Checked byte offsets of accesses of `width` bytes.

        Raises AccessError if one lies outside of every segment or is not aligned.
        """
        signed = addresses.astype(np.int64)
        if not signed.size:
            return signed
        place = self._segment_of(int(signed.min()))
        if place < 0 or int(signed.max()) + width > self._ends[place]:
            self._check_each(signed, width)
        return _aligned(signed - self.first_address, alignment)

    def _segment_of(self, address: int) -> int:
        """The last segment that begins at an address or before it; -1 if none does."""
        return int(self._starts.searchsorted(address, "right")) - 1

    def _check_each(self, addresses: Addresses, width: int) -> None:
        places = self._starts.searchsorted(addresses, "right") - 1
        inside = (places >= 0) & (addresses + width <= self._ends[places])
        if not inside.all():
            address = int(addresses[~inside][0])
            message = f"{width} bytes at {address:#x}, {self._describe(address)}"
            raise AccessError("out-of-bounds", message, ~inside)

    def _describe(self, address: int) -> str:
        for start, size in self._freed:
            if start <= address < start + size:
                return f"offset {address - start} of an allocation of {size} bytes that is freed"
        told, distance = self._nearest(address)
        behind = [(address - start - size, size) for start, size in self._freed]
        past, size = min((each for each in behind if each[0] >= 0), default=(self._reach, 0))
        if past >= min(distance, self._reach):
            return told
        freed = f"offset {size + past} of an allocation of {size} bytes that is freed"
        return freed if distance > self._reach else f"{freed}, or {told}"

    def _nearest(self, address: int) -> tuple[str, int]:
        """Where an address outside of the segments lies, and how far from the nearest one."""
        place = self._segment_of(address)
        after = address - int(self._ends[place]) if place >= 0 else self._reach + 1
        for following in self.segments[place + 1 : place + 2]:
            before = following.address - address
            if before < after and before <= min(self._reach, _GUARD):
                told = f"{before} bytes before `{following.name}`, which has {following.size} bytes"
                return told, before
        if after > self._reach:
            return self._elsewhere, after
        nearest = self.segments[place]
        offset = address - nearest.address
        return f"offset {offset} of `{nearest.name}`, which has {nearest.size} bytes", after


class OwnedMemory(ByteStore):
    """Equal pieces of memory, one for each owner, who addresses its own from 0.

    The LDS belongs to workgroups, scratch memory to lanes. `remedy` says what helps whoever has too
    little of it.
    """

    def __init__(self, name: str, owners: int, size: int, remedy: str = "") -> None:
        self.size, self.name, self.owners, self._remedy = size, name, owners, remedy
        self.stride = -(-size // 16) * 16
        super().__init__(zeros(owners * self.stride))

    def offsets(
        self, addresses: Words, owners: npt.NDArray[np.int64], width: int, alignment: int
    ) -> Addresses:
        """Checked offsets of accesses of `width` bytes by lanes on behalf of `owners`."""
        signed = addresses.astype(np.int64)
        if signed.size and int(signed.max()) + width > self.size:
            outside = signed + width > self.size
            message = f"{width} bytes at {self.name} address {int(signed[outside][0])}"
            told = f"{message}, but it has {self.size}{self._remedy}"
            raise AccessError("out-of-bounds", told, outside)
        return _aligned(signed + owners * self.stride, alignment)


def _aligned(offsets: Addresses, width: int) -> Addresses:
    off = _off(offsets, width)
    if off.any():
        message = f"address ending in {int(offsets[off][0]) & 0xFF:#x} is not aligned to {width}"
        raise AccessError("misaligned", message, off)
    return offsets


def _off(offsets: Addresses, width: int) -> npt.NDArray[np.bool_]:
    """Which of them are no multiples of a power of two."""
    off: npt.NDArray[np.bool_] = offsets & (width - 1) != 0
    return off
