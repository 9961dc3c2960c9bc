"""The arguments of a launch of Triton's as a kernel's argument segment has them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from mfmadsl.emulator.machine.launch import (
    Launch,
    LoadedProgram,
    dispatch_packet,
    hidden_arguments,
    host_memory,
    serve_host,
)
from mfmadsl.emulator.machine.memory import GlobalMemory
from mfmadsl.emulator.text.metadata import KernelArgument, passed
from mfmadsl.error import ArgumentError
from mfmadsl.triton.tensor import HostMemory, memory_of, without_overlaps

_FLOATS = {
    "fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp32": np.float32, "f32": np.float32,
    "fp64": np.float64,
}  # fmt: skip
_ALIGNMENT = 16  # bytes of the segment's size


@dataclass(frozen=True)
class Given:
    """One argument: its type as Triton writes it, a name for messages, and the value."""

    kind: str
    name: str
    value: Any

    @property
    def is_pointer(self) -> bool:
        """Whether it points to memory."""
        return self.kind.startswith("*")


def flattened(signature: Sequence[Any], values: Sequence[Any], name: str = "") -> Iterator[Given]:
    """What of the values a kernel is given: tuples one by one, no constants."""
    for place, (kind, value) in enumerate(zip(signature, values, strict=True)):
        own = f"{name}[{place}]" if name else f"argument {place}"
        if isinstance(kind, tuple):
            yield from flattened(kind, value, own)
        elif kind.startswith("tensordesc"):
            raise ArgumentError(f"{own}: tensor descriptors of the host are not emulated: give the "
                                "pointer, and make the descriptor in the kernel")  # fmt: skip
        elif kind != "constexpr":
            yield Given(kind, own, value)


def number_bytes(given: Given) -> bytes:
    """A value that is no pointer. Raises ArgumentError for one that its type does not hold."""
    kind, value = given.kind, given.value
    if kind in _FLOATS:
        return np.array(value, _FLOATS[kind]).tobytes()
    bits = int(kind[1:])
    size, signed = max(1, bits // 8), kind[0] == "i"
    number = int(value)
    try:
        return number.to_bytes(size, "little", signed=signed and not (bits == 1 and number > 0))
    except OverflowError:
        raise ArgumentError(f"{given.name}: {number} is not within {kind}") from None


@dataclass(frozen=True)
class BoundArguments:
    """What a launch is given, with the memory behind its pointers."""

    given: tuple[Given, ...]
    memories: tuple[HostMemory, ...]

    def loaded(self, launch: Launch, kept: bool = False) -> LoadedProgram:
        """The memory as the launch finds it, a copy that `bring_back` writes into the original; not
        if `kept`."""
        program = launch.program
        end = max((a.offset + a.size for a in program.arguments), default=_ALIGNMENT)
        size = -(-end // _ALIGNMENT) * _ALIGNMENT
        contents = [memory.content for memory in self.memories]
        memory = GlobalMemory.of_arrays(
            [
                ("kernel arguments", np.zeros(size, np.uint8)),
                ("dispatch packet", dispatch_packet(launch)),
                *zip(self._names(), contents, strict=True),
            ],
            {
                **{
                    s.name: f"`{s.name}`, which is constant"
                    for s in program.data
                    if not s.is_writable
                },
                **{
                    name: f"{name}, an array that is read-only"
                    for name, each in zip(self._names(), self.memories, strict=True)
                    if each.read_only
                },
            },
            program.data,
            behind=host_memory(launch),
        )
        block, packet, *segments = memory.segments[len(program.data) :][: 2 + len(contents)]
        serve_host(launch, memory, quiet=kept)
        starts = [segment.address for segment in segments]
        content = memory.content(block)
        for argument, value in self._placed(passed(program.arguments), starts):
            content[argument.offset : argument.offset + len(value)] = np.frombuffer(value, np.uint8)
        for argument, told in hidden_arguments(launch, memory):
            content[argument.offset : argument.offset + argument.size] = told
        back = [
            (content, segment)
            for each, content, segment in zip(self.memories, contents, segments, strict=True)
            if not kept and not each.read_only
        ]
        return LoadedProgram(memory, block, packet, tuple(back))

    def _names(self) -> list[str]:
        """Memories by the arguments that point into them."""
        names: list[list[str]] = [[] for _ in self.memories]
        for each in self.given:
            if each.is_pointer and each.value is not None:
                names[self._memory_at(_address(each))].append(each.name)
        return [", ".join(own) or f"memory {place}" for place, own in enumerate(names)]

    def _memory_at(self, address: int) -> int:
        return next(
            place for place, memory in enumerate(self.memories)
            if memory.address <= address <= memory.address + memory.size
        )  # fmt: skip

    def _placed(
        self, arguments: Sequence[KernelArgument], starts: Sequence[int]
    ) -> Iterator[tuple[KernelArgument, bytes]]:
        """The bytes of each argument. Behind those of the kernel's parameters are pointers to
        memory of Triton's own, which are null."""
        if len(self.given) > len(arguments):
            raise ArgumentError(
                f"the kernel takes {len(arguments)} arguments, not {len(self.given)}"
            )
        for argument, each in zip(arguments, self.given, strict=False):
            value = self._pointer(each, starts) if each.is_pointer else number_bytes(each)
            if len(value) != argument.size:
                raise ArgumentError(
                    f"{each.name}: {each.kind} has {len(value)} bytes, but the kernel takes "
                    f"{argument.size}"
                )
            yield argument, value

    def _pointer(self, given: Given, starts: Sequence[int]) -> bytes:
        if given.value is None:
            return struct.pack("<Q", 0)
        address = _address(given)
        place = self._memory_at(address)
        return struct.pack("<Q", starts[place] + address - self.memories[place].address)


def _address(given: Given) -> int:
    return int(given.value.data_ptr())


def bound(signature: Sequence[Any], values: Sequence[Any]) -> BoundArguments:
    """The arguments of a launch. Raises ArgumentError for what the emulator does not reach."""
    given = tuple(flattened(signature, values))
    pointed = [each for each in given if each.is_pointer and each.value is not None]
    for each in pointed:
        if not hasattr(each.value, "data_ptr"):
            raise ArgumentError(f"{each.name}: {each.kind} is a tensor, not a number")
    memories = without_overlaps([memory_of(each.name, each.value) for each in pointed])
    return BoundArguments(given, tuple(memories))
