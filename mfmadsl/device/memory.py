"""The memory that a program shares with the emulated GPU."""

from __future__ import annotations

import mmap
import os
from bisect import bisect_left
from collections.abc import Mapping, Sequence

import numpy as np

from mfmadsl.device.protocol import RESERVED_BYTES
from mfmadsl.emulator.machine.launch import (
    Launch,
    LoadedProgram,
    dispatch_packet,
    hidden_arguments,
    host_memory,
    serve_host,
)
from mfmadsl.emulator.machine.memory import Bytes, GlobalMemory, Segment
from mfmadsl.error import ArgumentError

_ELSEWHERE = "in no allocation: is it freed, or a pointer of the host or of another device?"
_GUARD = 4096  # bytes behind an allocation that are nobody's
_ARGUMENTS = 4096  # offsets in what is reserved
_MOST_FREED = 1 << 10  # allocations that are remembered
_NO_RESERVE = 0x4000  # MAP_NORESERVE, which Python knows from 3.13 on: no memory until written
_HOST = 1 << 28  # at the end, for calls of the host
_PACKET = RESERVED_BYTES - 2 * 4096  # no neighbour of the first allocation
MOST_ARGUMENT_BYTES = _PACKET - _ARGUMENTS - 4096


class SharedMemory:
    """All addresses of a program's device memory, and which of them are allocated.

    What a launch needs beside lies before the first allocation: the arguments and the dispatch
    packet.
    """

    def __init__(self, file: int, start: int, alone: bool = True) -> None:
        """`file` is a descriptor of the memory, `start` its address in the program; `alone` says
        that all allocations are those of one device."""
        self._file, self._start = file, start
        self._shared = self._mapped(mmap.MAP_SHARED)
        self._allocations: tuple[tuple[int, int], ...] = ()
        self._alone = alone
        self._freed: list[tuple[int, int]] = []

    def close(self) -> None:
        """The program has ended: what is mapped goes with the last that looks at it."""
        os.close(self._file)

    def _mapped(self, kind: int) -> Bytes:
        size = os.fstat(self._file).st_size
        return np.frombuffer(mmap.mmap(self._file, size, kind | _NO_RESERVE), np.uint8)

    def allocate(self, allocations: tuple[tuple[int, int], ...]) -> None:
        """From now on these are the allocations, as (address, bytes)."""
        if self._alone:
            gone = {*self._freed, *self._allocations}.difference(allocations)
            self._freed = [each for each in sorted(gone) if not _taken(each, allocations)]
            del self._freed[:-_MOST_FREED]
        self._allocations = allocations

    @property
    def start(self) -> int:
        """The address of the memory in the program."""
        return self._start

    @property
    def content(self) -> Bytes:
        """All of its bytes."""
        return self._shared

    def write(self, address: int, content: bytes) -> None:
        """Put bytes at an address of the program's. Raises ArgumentError beyond the memory."""
        start = address - self._start
        if not 0 <= start <= len(self._shared) - len(content):
            raise ArgumentError(f"{len(content)} bytes at {address:#x} are beyond the memory")
        self._shared[start : start + len(content)] = np.frombuffer(content, np.uint8)

    def loaded(
        self, launch: Launch, arguments: bytes, names: Mapping[int, str], kept: bool = False
    ) -> LoadedProgram:
        """The memory as a launch finds it; `names` are those of the arguments, by what they point
        to. With `kept` the program never sees what the launch writes."""
        content = self._mapped(mmap.MAP_PRIVATE) if kept else self._shared
        block = Segment("kernel arguments", self._start + _ARGUMENTS, len(arguments))
        packet = Segment("dispatch packet", self._start + _PACKET, 64)
        segments = [block, packet]
        for address, size in self._allocations:
            name = names.get(address, f"the allocation at {address:#x}")
            segments.append(Segment(name, address, size))
        for name, size in host_memory(launch):
            segments.append(Segment(name, self._start + content.size - _HOST, size))
        memory = GlobalMemory(
            content, self._start, segments, elsewhere=_ELSEWHERE, reach=_GUARD, freed=self._freed
        )
        memory.content(block)[:] = np.frombuffer(arguments, np.uint8)
        memory.content(packet)[:] = dispatch_packet(launch)
        serve_host(launch, memory, quiet=kept)
        for argument, value in hidden_arguments(launch, memory):
            memory.content(block)[argument.offset : argument.offset + argument.size] = value
        return LoadedProgram(memory, block, packet)


def _taken(freed: tuple[int, int], allocations: Sequence[tuple[int, int]]) -> bool:
    """Whether any of what was freed is allocated again; allocations are in order."""
    start, end = freed[0], freed[0] + freed[1]
    place = bisect_left(allocations, (end, 0)) - 1  # the last that begins before the end
    return place >= 0 and sum(allocations[place]) > start


def pointers(arguments: Sequence[tuple[str, int]], block: bytes) -> dict[int, str]:
    """Where arguments point to; `arguments` are (name, offset) of those that are pointers."""
    return {
        int.from_bytes(block[offset : offset + 8], "little"): name or f"argument {place}"
        for place, (name, offset) in enumerate(arguments)
    }
