"""Global memory and LDS: bytes, addressed by many lanes at once, with their bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.error import EmulationError
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


class ByteStore:
    """Bytes that lanes load from and store to."""

    def __init__(self, size: int) -> None:
        padded = -(-size // 16) * 16
        self._bytes: Bytes = np.zeros(padded, dtype=np.uint8)
        self._halves = self._bytes.view(np.uint16)
        self._words = self._bytes.view(np.uint32)

    @property
    def size_in_bytes(self) -> int:
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
            self._words[first + i] = word

    def load_narrow(self, offsets: Addresses, width: int) -> Words:
        """One byte or two from each offset, zero-extended."""
        if width == 1:
            return self._bytes[offsets].astype(np.uint32)
        if _off(offsets, 2).any():
            return self._gathered(offsets, 2)
        return self._halves[offsets >> 1].astype(np.uint32)

    def store_narrow(self, offsets: Addresses, values: Words, width: int) -> None:
        if width == 1:
            self._bytes[offsets] = values.astype(np.uint8)
        elif _off(offsets, 2).any():
            self._scatter(offsets, values, 2)
        else:
            self._halves[offsets >> 1] = values.astype(np.uint16)

    def _gathered(self, offsets: Addresses, width: int) -> Words:
        found = np.zeros(offsets.shape, np.uint32)
        for i in range(width):
            found |= self._bytes[offsets + i].astype(np.uint32) << np.uint32(8 * i)
        return found

    def _scatter(self, offsets: Addresses, values: Words, width: int) -> None:
        for i in range(width):
            self._bytes[offsets + i] = (values >> np.uint32(8 * i)).astype(np.uint8)


class GlobalMemory(ByteStore):
    """The segments of one launch in one address space, with guards between them.

    `protected` says of segments, by their names, why they must not be written.
    """

    def __init__(
        self,
        arrays: Sequence[tuple[str, npt.NDArray[np.uint8]]],
        protected: Mapping[str, str] | None = None,
    ) -> None:
        self.segments: list[Segment] = []
        offset = _GUARD
        for name, content in arrays:
            self.segments.append(Segment(name, _FIRST_ADDRESS + offset, content.size))
            offset += -(-content.size // _GUARD) * _GUARD + _GUARD
        super().__init__(offset)
        for segment, (_, content) in zip(self.segments, arrays, strict=True):
            self.content(segment)[:] = content
        self._protected = [
            (segment, reason)
            for segment in self.segments
            if (reason := (protected or {}).get(segment.name))
        ]

    def store_words(self, offsets: Addresses, values: Words) -> None:
        if self._protected:
            self._check_writes(offsets)
        super().store_words(offsets, values)

    def store_narrow(self, offsets: Addresses, values: Words, width: int) -> None:
        if self._protected:
            self._check_writes(offsets)
        super().store_narrow(offsets, values, width)

    def _check_writes(self, offsets: Addresses) -> None:
        for segment, reason in self._protected:
            start = self.offset_of(segment)
            if ((offsets >= start) & (offsets < start + segment.size)).any():
                raise EmulationError(
                    f"writes to argument {segment.name}, whose array {reason}", kind="read-only"
                )

    def content(self, segment: Segment) -> Bytes:
        start = self.offset_of(segment)
        return self._bytes[start : start + segment.size]

    def offset_of(self, segment: Segment) -> int:
        return segment.address - _FIRST_ADDRESS

    def describe(self, offset: int) -> str:
        """Where an offset in this memory lies."""
        return self._describe(offset + _FIRST_ADDRESS)

    def offsets(
        self, addresses: npt.NDArray[np.uint64], width: int, alignment: int = 1
    ) -> Addresses:
        """Checked byte offsets of accesses of `width` bytes.

        Raises AccessError if one lies outside of every segment or is not aligned.
        """
        signed = addresses.astype(np.int64)
        if not signed.size:
            return signed
        low, high = int(signed.min()), int(signed.max()) + width
        if not any(s.address <= low and high <= s.address + s.size for s in self.segments):
            self._check_each(signed, width)
        return _aligned(signed - _FIRST_ADDRESS, alignment)

    def _check_each(self, addresses: Addresses, width: int) -> None:
        inside = np.zeros(addresses.shape, dtype=bool)
        for s in self.segments:
            inside |= (addresses >= s.address) & (addresses + width <= s.address + s.size)
        if not inside.all():
            address = int(addresses[~inside][0])
            message = f"{width} bytes at {address:#x}, {self._describe(address)}"
            raise AccessError("out-of-bounds", message, ~inside)

    def _describe(self, address: int) -> str:
        before = [s for s in self.segments if s.address <= address]
        if not before or address - before[-1].address > 1 << 32:
            return "far from every argument"
        nearest = before[-1]
        offset = address - nearest.address
        return f"offset {offset} of `{nearest.name}`, which has {nearest.size} bytes"


class OwnedMemory(ByteStore):
    """Equal pieces of memory, one for each owner, who addresses its own from 0.

    The LDS belongs to workgroups, scratch memory to lanes.
    """

    def __init__(self, name: str, owners: int, size: int) -> None:
        self.size, self.name, self.owners = size, name, owners
        self.stride = -(-size // 16) * 16
        super().__init__(owners * self.stride)

    def offsets(
        self, addresses: Words, owners: npt.NDArray[np.int64], width: int, alignment: int
    ) -> Addresses:
        """Checked offsets of accesses of `width` bytes by lanes on behalf of `owners`."""
        signed = addresses.astype(np.int64)
        if signed.size and int(signed.max()) + width > self.size:
            outside = signed + width > self.size
            message = f"{width} bytes at {self.name} address {int(signed[outside][0])}"
            raise AccessError("out-of-bounds", f"{message}, but it has {self.size}", outside)
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
