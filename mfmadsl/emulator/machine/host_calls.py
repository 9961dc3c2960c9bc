"""Calls of the host by kernels, as those that print and assertions that fail make them.

A wave takes a packet off a stack, fills it, puts it onto another stack and interrupts the host,
which answers in the packet. Source: ROCm's device library (`ockl`, hostcall) and HIP's runtime,
which has the host's half.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mfmadsl.emulator.machine.memory import GlobalMemory, Segment
from mfmadsl.emulator.machine.printing import printed

NAME = "the buffer of calls of the host"
ARGUMENT = "hidden_hostcall_buffer"
_MOST = 1 << 14  # packets: as many as waves hold at once
_HEADERS, _PAYLOADS, _DOORBELL, _FREE, _READY, _MASK = range(0, 48, 8)
_SIGNAL, _MAILBOX, _FIRST = 64, 128, 192
_HEADER, _PAYLOAD, _SLOT = 24, 4096, 64
_PRINTS = 2  # the service
_BEGINS, _ENDS = 1, 2
_WORDS = 5  # where a message's number of words begins, three bits; its own number follows

Write = Callable[[bool, str], None]
"""Takes whether it is for standard error, and a text."""


def packets(waves: int) -> int:
    """How many packets a launch of so many waves gets: a power of two."""
    return 1 << max(1, min(waves + 1, _MOST).bit_length())


def bytes_of(count: int) -> int:
    """What a buffer of so many packets takes."""
    return _FIRST + count * (_HEADER + _PAYLOAD)


def to_standard_streams(is_error: bool, text: str) -> None:
    """Print what a kernel prints."""
    print(text, end="", file=sys.stderr if is_error else sys.stdout, flush=True)


def in_silence(is_error: bool, text: str) -> None:
    """Of a run that is only looked at."""


@dataclass
class HostCalls:
    """The host's half, of a launch. `said` is the last that a kernel printed to standard error."""

    memory: GlobalMemory
    segment: Segment
    count: int
    write: Write = to_standard_streams
    said: str = ""

    def __post_init__(self) -> None:
        """All packets are free: each leads to the one before it."""
        self._messages: dict[int, list[int]] = {}
        self._errors: Counter[str] = Counter()
        self._last = 0
        address, count = self.segment.address, self.count
        content = self.memory.content(self.segment)
        words = content[: len(content) // 8 * 8].view(np.uint64)
        headers = content[_FIRST : _FIRST + count * _HEADER].view(np.uint64).reshape(count, 3)
        headers[:, 0] = np.arange(count) - 1 + count  # with a tag, so that none is 0
        headers[:2, 0] = 0
        for place, value in (
            (_HEADERS, address + _FIRST), (_PAYLOADS, address + _FIRST + count * _HEADER),
            (_DOORBELL, address + _SIGNAL), (_FREE, 2 * count - 1), (_READY, 0),
            (_MASK, count - 1), (_SIGNAL + 16, address + _MAILBOX), (_SIGNAL + 24, 1),
        ):  # fmt: skip
            words[place // 8] = value

    @property
    def start(self) -> int:
        """Its offset in memory, behind which nothing else lies."""
        return self.memory.offset_of(self.segment)

    def serve(self) -> None:
        """Answer all packets that are ready, in the order in which they came."""
        packet, ready = self._word(_READY), []
        self._put(_READY, 0)
        while packet:
            ready.append(packet & (self.count - 1))
            packet = self._word(_FIRST + ready[-1] * _HEADER)
        for each in reversed(ready):
            self._answer(each)
        for text, lanes in self._errors.items():
            self.said = text.strip()
            whole = text.rstrip("\n")
            told = f"{whole} [{lanes} lanes]{text[len(whole) :]}" if lanes > 1 else text
            self.write(True, told)
        self._errors.clear()

    def _answer(self, packet: int) -> None:
        header = _FIRST + packet * _HEADER
        lanes, control = self._word(header + 8), self._word(header + 16)
        if control & 0xFFFF_FFFF == _PRINTS:
            for lane in range(64):
                if lanes >> lane & 1:
                    self._print(packet, lane)
        self._put(header + 16, control & ~(1 << 32))  # no longer ready

    def _print(self, packet: int, lane: int) -> None:
        """A part of what a lane prints: the descriptor, and up to seven words."""
        slot = _FIRST + self.count * _HEADER + packet * _PAYLOAD + lane * _SLOT
        told = self._word(slot)
        parts = [self._word(slot + 8 + 8 * i) for i in range(told >> _WORDS & 7)]
        if told & _BEGINS:
            self._last += 1
            told = (told & 0xFF & ~_BEGINS) | self._last << 8
            self._messages[self._last] = []
        self._messages.setdefault(told >> 8, []).extend(parts)
        if told & _ENDS:
            self._say(self._messages.pop(told >> 8))
        self._put(slot, told)

    def _say(self, words: Sequence[int]) -> None:
        text = printed(words[1:])
        if words and words[0] & 1:  # all lanes of an assertion say the same
            self._errors[text] += 1
        else:
            self.write(False, text)

    def _word(self, offset: int) -> int:
        low, high = self.memory.load_words(np.array([self.start + offset]), 2)[:, 0]
        return int(low) | int(high) << 32

    def _put(self, offset: int, value: int) -> None:
        words = np.array([[value & 0xFFFF_FFFF], [value >> 32]], np.uint32)
        self.memory.store_words(np.array([self.start + offset]), words)
