"""Allocations that a kernel cannot have a pointer to: whoever accesses them left another one.

A kernel has addresses from its arguments, from modules, and from memory that it reaches by those.
Where a distance between two allocations, in elements of some size, is among these, a kernel may go
from one to the other on purpose.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mfmadsl.device.module import Module
from mfmadsl.emulator.machine.bits import Mask
from mfmadsl.emulator.machine.memory import Addresses, GlobalMemory, Segment
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.sanitizer.footprint import SHARED_WRITE, WRITE, MemoryWatch

_MOST_BYTES = 1 << 23  # of memory that is searched for pointers at each launch
_ADDRESS_BITS = (1 << 48) - 1
_SIZES = (1, 2, 4, 8, 16)  # of elements that distances may count

Words = npt.NDArray[np.uint64]


class Reach:
    """What a launch finds in memory: which allocations its arguments lead to, and modules."""

    def __init__(
        self, memory: GlobalMemory, arguments: bytes, allocations: Sequence[Segment],
        of_modules: Sequence[Segment], variables: Sequence[Segment],
    ) -> None:  # fmt: skip
        """`variables` are parts of modules that are not as they were loaded."""
        self._memory, self._reached = memory, list(of_modules)
        self._modules, self._variables = len(self._reached), variables
        self._arguments = np.frombuffer(arguments, np.uint8)
        words = _words(self._arguments)
        left = [each for each in allocations if each not in of_modules]
        fresh, searched = list(of_modules), 0
        self.known = True
        while left and (fresh or len(words)):
            pointed = _pointed(words, left)
            left = [each for each in left if each not in pointed]
            fresh += pointed
            self._reached += pointed
            searched += sum(each.size for each in fresh) if left else 0
            if searched > _MOST_BYTES:
                self.known = False
                break
            found = [_words(memory.content(each)) for each in fresh] if left else []
            words, fresh = np.concatenate(found) if found else words[:0], []
        self.unreached = tuple(left) if self.known else ()

    def distant(self, segment: Segment) -> bool:
        """Whether anything that is reached may be a distance from there to an allocation."""
        found = [*self._reached[self._modules :], *self._variables]
        for content in (self._arguments, *map(self._memory.content, found)):
            numbers = np.unique(_distances(content, self._reached))
            for base in self._reached:
                first = segment.address - base.address - base.size
                last = segment.address + segment.size - base.address
                for size in _SIZES:
                    if ((numbers * size >= first) & (numbers * size <= last)).any():
                        return True
        return False


def reach_of(memory: GlobalMemory, arguments: bytes, modules: Sequence[Module]) -> Reach:
    """The allocations that a launch finds in a program's memory, behind its own two segments."""
    last = memory.host.start if memory.host is not None else None
    allocations = [each for each in memory.segments[2:] if memory.offset_of(each) != last]
    bases = {each.base for each in modules}
    of_modules = [each for each in allocations if each.address in bases]
    variables = [
        (Segment("", module.base + section.address, len(section.content)), section.content)
        for module in modules
        for section in module.object.sections
        if section.is_writable
        and section.content
        and module.base in {s.address for s in of_modules}
    ]
    changed = [each for each, loaded in variables if memory.content(each).tobytes() != loaded]
    return Reach(memory, arguments, allocations, of_modules, changed)


def _words(content: npt.NDArray[np.uint8]) -> Words:
    """Eight bytes from each one on: a pointer may lie anywhere."""
    if len(content) < 8:
        return np.zeros(0, np.uint64)
    return np.ndarray((len(content) - 7,), np.uint64, np.ascontiguousarray(content), 0, (1,))


def _distances(content: npt.NDArray[np.uint8], reached: Sequence[Segment]) -> npt.NDArray[np.int64]:
    """Numbers that may be one, of 8 bytes or 4, but for halves of pointers."""
    words = _words(content)
    pointers = np.zeros(len(content) + 8, np.bool_)
    for place in np.flatnonzero(_within(words, reached)[0]).tolist():
        pointers[place : place + 8] = True
    halves = np.ascontiguousarray(content[: len(content) // 4 * 4]).view(np.int32)
    single = halves[~(pointers[::4] | pointers[3::4])[: len(halves)]]
    numbers = np.concatenate([words[::4].view(np.int64), single.astype(np.int64)])
    near = (np.abs(numbers) < 1 << 44) & (numbers != 0)
    return np.asarray(numbers[near])


def _within(words: Words, segments: Sequence[Segment]) -> tuple[Mask, npt.NDArray[np.int64]]:
    """Which words point to any of some allocations, or to the end of it; and to which, of these."""
    order = sorted(range(len(segments)), key=lambda i: segments[i].address)
    starts = np.array([segments[i].address for i in order], np.int64)
    ends = np.array([segments[i].address + segments[i].size for i in order], np.int64)
    places = (words & np.uint64(_ADDRESS_BITS)).view(np.int64)
    inside = np.zeros(len(words), np.bool_)
    near = np.flatnonzero((places >= starts[0]) & (places <= ends[-1]))
    found = starts.searchsorted(places[near], "right") - 1
    hit = places[near] <= ends[found]
    inside[near[hit]] = True
    return inside, np.array(order, np.int64)[found[hit]]


def _pointed(words: Words, segments: Sequence[Segment]) -> list[Segment]:
    """The allocations that any word points to, or to the end of."""
    return [segments[each] for each in np.unique(_within(words, segments)[1]).tolist()]


class Foreign:
    """Tells accesses to allocations that a kernel has no pointer to, and hands all on to another
    watch."""

    def __init__(self, reach: Reach, inner: MemoryWatch) -> None:
        self._reach, self._inner = reach, inner
        self._unreached = reach.unreached

    def accesses(
        self, waves: Waves, mask: Mask | None, offsets: Addresses, size: int, kind: int
    ) -> None:
        """Lanes access global memory."""
        flat = offsets.reshape(-1)
        if self._unreached and flat.size:
            self._look(waves, mask, flat, kind)
        self._inner.accesses(waves, mask, offsets, size, kind)

    def scalar_accesses(self, waves: Waves, offsets: Addresses, size: int) -> None:
        """Waves load into scalar registers."""
        self._inner.scalar_accesses(waves, offsets, size)

    def _look(self, waves: Waves, mask: Mask | None, flat: Addresses, kind: int) -> None:
        first, last = int(flat.min()), int(flat.max())
        for segment in self._unreached:
            start = waves.memory.offset_of(segment)
            if first >= start + segment.size or last < start:
                continue
            hit = (flat >= start) & (flat < start + segment.size)
            if not hit.any():
                continue
            if self._reach.distant(segment):
                self._unreached = tuple(s for s in self._unreached if s is not segment)
                continue
            verb = "writes" if kind & (WRITE | SHARED_WRITE) else "reads"
            where = waves.memory.describe(int(flat[hit.argmax()]))
            message = (
                f"{verb} {where}: no argument leads there, nor anything in the memory that "
                "arguments lead to"
            )
            waves.fault("out-of-bounds", message, *waves.first_lane(mask, hit))
