"""The host's half of calls by kernels, asked as ROCm's device library asks."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from mfmadsl.emulator.machine.host_calls import HostCalls, bytes_of, packets
from mfmadsl.emulator.machine.memory import GlobalMemory

BEGIN, END, READY, PRINTS = 1, 2, 1, 2
FREE_STACK, READY_STACK, MASK = 24, 32, 40


class Wave:
    """One that calls the host, by a buffer of so many packets."""

    def __init__(self, count: int) -> None:
        self.memory = GlobalMemory.of_arrays(
            [("data", np.zeros(64, np.uint8))], behind=[("host", bytes_of(count))]
        )
        self.segment = self.memory.segments[-1]
        self.said: list[tuple[bool, str]] = []
        self.host = HostCalls(
            self.memory, self.segment, count, lambda err, text: self.said.append((err, text))
        )

    def word(self, address: int, value: int | None = None) -> int:
        content = self.memory.content(self.segment)
        place = address - self.segment.address
        if value is not None:
            content[place : place + 8] = np.frombuffer(struct.pack("<Q", value), np.uint8)
        (found,) = struct.unpack("<Q", content[place : place + 8].tobytes())
        return int(found)

    def at(self, offset: int, value: int | None = None) -> int:
        return self.word(self.segment.address + offset, value)

    def takes(self) -> tuple[int, int, int]:
        """A packet off the stack of free ones, with the addresses of its header and its slots."""
        packet = self.at(FREE_STACK)
        index = packet & self.at(MASK)
        header, slots = self.at(0) + 24 * index, self.at(8) + 4096 * index
        self.at(FREE_STACK, self.word(header))
        return packet, header, slots

    def sends(self, packet: int, header: int, lanes: int) -> None:
        self.word(header + 8, lanes)
        self.word(header + 16, READY << 32 | PRINTS)
        self.word(header, self.at(READY_STACK))
        self.at(READY_STACK, packet)


def string(text: str) -> list[int]:
    content = text.encode() + b"\0"
    content += b"\0" * (-len(content) % 8)
    return list(struct.unpack(f"<{len(content) // 8}Q", content))


@pytest.mark.parametrize("waves", [1, 3, 1000, 1 << 20])
def test_there_are_as_many_packets_as_waves_hold(waves: int) -> None:
    count = packets(waves)
    assert count & (count - 1) == 0
    wave = Wave(min(count, 64))
    taken = {wave.takes()[0] for _ in range(min(count, 64) - 1)}
    assert len(taken) == min(count, 64) - 1
    assert 0 not in taken


@pytest.mark.parametrize("error", [0, 1])
def test_a_message_in_parts_is_printed_when_it_ends(error: int) -> None:
    wave = Wave(8)
    packet, header, slots = wave.takes()
    slot = slots + 64 * 5  # that of lane 5
    wave.word(slot, BEGIN | 1 << 5)
    wave.word(slot + 8, error)
    wave.sends(packet, header, 1 << 5)
    wave.host.serve()
    assert wave.said == []
    assert wave.word(header + 16) >> 32 == 0
    told = wave.word(slot)
    assert told & (BEGIN | END) == 0
    assert told >> 8  # the message's number
    for words, last in ((string("%d of "), 0), ([7], END)):
        wave.word(slot, (told & ~0xE0) | len(words) << 5 | last)
        for i, word in enumerate(words):
            wave.word(slot + 8 + 8 * i, word)
        wave.sends(packet, header, 1 << 5)
        wave.host.serve()
    assert wave.said == [(bool(error), "7 of ")]
    assert wave.host.said == ("7 of" if error else "")


def test_packets_are_answered_in_the_order_in_which_they_came() -> None:
    wave = Wave(8)
    for text in ("a", "b", "c"):
        packet, header, slots = wave.takes()
        wave.word(slots, BEGIN | END | 2 << 5)
        wave.word(slots + 8, 0)
        wave.word(slots + 16, *string(text))
        wave.sends(packet, header, 1)
    wave.host.serve()
    assert [text for _, text in wave.said] == ["a", "b", "c"]
    assert wave.at(READY_STACK) == 0


def test_what_all_lanes_say_as_an_error_is_printed_once() -> None:
    wave = Wave(8)
    for lanes in ((0, 5, 63), (2,)):  # of two waves
        packet, header, slots = wave.takes()
        for lane in lanes:
            slot = slots + 64 * lane
            wave.word(slot, BEGIN | END | 2 << 5)
            wave.word(slot + 8, 1)
            wave.word(slot + 16, *string("wrong!\n"))
        wave.sends(packet, header, sum(1 << lane for lane in lanes))
    wave.host.serve()
    assert wave.said == [(True, "wrong! [4 lanes]\n")]
    assert wave.host.said == "wrong!"
