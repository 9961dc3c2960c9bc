"""What the sanitizer looks at, of waves that run together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.error import EmulationError, Fault
from mfmadsl.emulator.machine.bits import Array, Mask
from mfmadsl.emulator.machine.coherence import DEVICE, PLAIN, WORKGROUP, Coherence
from mfmadsl.emulator.machine.memory import Addresses, ByteStore
from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.wait import wait_counts
from mfmadsl.emulator.machine.watch import Watch
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.machine.width import Width
from mfmadsl.emulator.sanitizer.accesses import Lanes
from mfmadsl.emulator.sanitizer.ahead import Ahead
from mfmadsl.emulator.sanitizer.brought import Brought
from mfmadsl.emulator.sanitizer.facts import Facts
from mfmadsl.emulator.sanitizer.footprint import (
    READ,
    SHARED_READ,
    SHARED_WRITE,
    WRITE,
    MemoryWatch,
)
from mfmadsl.emulator.sanitizer.global_race import GlobalRaces
from mfmadsl.emulator.sanitizer.in_flight import InFlight, Selected
from mfmadsl.emulator.sanitizer.lanes_off import LanesOff
from mfmadsl.emulator.sanitizer.race import LdsAccessKind, Races
from mfmadsl.emulator.sanitizer.undefined import Undefined
from mfmadsl.emulator.sanitizer.wait_states import WaveSequences
from mfmadsl.emulator.text.assembly import Instruction, Program
from mfmadsl.emulator.text.operand import Register
from mfmadsl.model import assumed


class Checks(Watch):
    """Watches waves that run together.

    `piece` is the smallest number of bytes that an instruction of the program accesses in LDS;
    `in_memory` has the accesses of all waves of the launch to global memory; `collect` says whether
    a fault is kept, so that the emulation goes on; `jumps` are those past the end of a region of
    some lanes; `beside` knows what else happens to memory.
    """

    def __init__(
        self,
        waves: Waves,
        program: Program,
        undefined: Undefined,
        facts: Facts,
        piece: int,
        in_memory: GlobalRaces,
        collect: Callable[[Waves, Fault], bool],
        beside: MemoryWatch | None = None,
    ) -> None:
        self._program, self._undefined, self._collect = program, undefined, collect
        self._current = program.instructions[0]
        self._total = waves.count
        self._loaded: list[tuple[Register, Array, Mask | None]] = []
        self._in_flight = InFlight(waves.count, facts.flights)
        self._executed = WaveSequences(waves.count, facts.sequences)
        self._lanes_off = LanesOff(program, waves.count, facts.jumps)
        self._races = Races(waves, self._in_flight, piece)
        self._in_memory, self._coherence = in_memory, Coherence.of(assumed(program.arch))
        per_group = waves.position.waves_per_group
        groups = waves.position.groups[waves.workgroup]
        self._ids = groups * per_group + np.arange(waves.count) % per_group  # in the launch
        self._returns, self._beside = False, beside
        self._polls, self._compared = facts.polls, facts.compared
        self.ahead = Ahead(
            self._executed, self._in_flight, undefined, self._races, in_memory, self._lanes_off,
            self._ids, self._polls | self._compared,
            memory_alone=beside is not None or waves.memory.host is not None,
        )  # fmt: skip

    def collects(self, waves: Waves, fault: Fault) -> bool:
        """Whether `collect` keeps the fault, so that the emulation goes on."""
        return self._collect(waves, fault)

    def _chosen(self, waves: Waves) -> Selected:
        return slice(None) if waves.count == self._total else waves.index

    def before(self, waves: Waves, instruction: Instruction, operation: Operation) -> None:
        """Find registers that are used too early, and undefined bits that are read."""
        chosen = self._chosen(waves)
        self._current, self._returns = instruction, bool(operation.writes)
        self._executed.executes(waves, chosen, instruction, operation)
        self._in_flight.used(waves, chosen, operation)
        self._lanes_off.executes(waves, instruction, operation)
        if instruction.name == "s_setvskip":
            self._in_flight.switched(waves, chosen)
        self._undefined.check_reads(waves, chosen, operation)

    def after(self, waves: Waves, instruction: Instruction, operation: Operation) -> None:
        """Note which registers are in flight, and which bits of them are undefined."""
        chosen = self._chosen(waves)
        self._in_flight.issue(chosen, operation)
        self._undefined.written(waves, chosen, operation)
        for target, bits, mask in self._loaded:
            self._undefined.loaded(waves, chosen, target, bits, mask)
        self._loaded.clear()

    def passes(self, waves: Waves, instruction: Instruction) -> None:
        """Count what passes as a wait state; note what has arrived behind an `s_waitcnt`, and what
        waves do with their caches."""
        chosen = self._chosen(waves)
        self._executed.executes(waves, chosen, instruction, None)
        self._lanes_off.passes(waves, instruction)
        if instruction.name == "s_waitcnt":
            counts = wait_counts(instruction.modifiers["argument"])
            self._in_flight.wait(chosen, counts)
        elif instruction.name.startswith("s_cbranch"):
            self._undefined.check_branch(waves, chosen, instruction.name)
        elif instruction.name.startswith("buffer_"):
            ids, flight = self._ids[waves.index], self._in_flight
            if self._coherence.writes_back(instruction):
                self._in_memory.knowledge.write_back(ids, flight.issued["vmcnt"][waves.index])
            if self._coherence.invalidates(instruction):
                self._in_memory.knowledge.invalidate(ids, flight.done["vmcnt"][waves.index])

    def barrier(self, groups: Sequence[Waves]) -> None:
        """Find waves that have ended, and let accesses to LDS be ordered by the barrier."""
        waiting = np.concatenate([group.index for group in groups])
        per_group = groups[0].position.waves_per_group
        arrived = np.bincount(waiting // per_group)
        # Waves may wait at different barriers: all that counts is that they pass together.
        for group in groups:
            left = arrived[group.index // per_group]
            if (left < per_group).any():
                wave = int(np.argmax(left < per_group))
                ended = per_group - int(left[wave])
                message = f"{left[wave]} of {per_group} waves wait here, but {ended} have ended"
                place = self._program.instructions[group.pc - 1]
                try:
                    group.fault("divergent-barrier", message, wave)
                except EmulationError as error:
                    raise error.at(place.line, place.text) from None
        self._races.barrier(waiting)
        self._in_memory.knowledge.barrier(
            self._ids[waiting],
            self._in_flight.issued["vmcnt"][waiting],
            self._in_flight.done["vmcnt"][waiting],
        )

    def _lanes(self, waves: Waves, mask: Mask | None, reach: int) -> Lanes:
        tickets = self._in_flight.issued["vmcnt"][waves.index] + 1
        ids, done = self._ids[waves.index], self._in_flight.done["vmcnt"][waves.index]
        return Lanes.of(waves, self._current, mask, ids, tickets, done, reach)

    def _access(
        self, waves: Waves, offsets: Addresses, size: int, mask: Mask | None,
        access: LdsAccessKind, brought: tuple[Register, Width] | None = None,
    ) -> None:  # fmt: skip
        self._races.access(waves, offsets, size, mask, access, self._current, brought)

    def _tell_beside(
        self, waves: Waves, mask: Mask | None, offsets: Addresses, size: int, kind: int
    ) -> None:
        if self._beside is not None:
            self._beside.accesses(waves, mask, offsets, size, kind)

    def loads(
        self, waves: Waves, store: ByteStore, offsets: Addresses, target: Register, width: Width,
        mask: Mask | None,
    ) -> None:  # fmt: skip
        """Find races and undefined memory; what is loaded from scratch memory may be undefined."""
        reach, polled = self._coherence.reach(self._current), waves.pc - 1 in self._polls
        first_look = waves.pc - 1 in self._compared and reach == PLAIN
        in_memory = store is waves.memory and not _of_host(waves, offsets)
        if in_memory:
            shared = first_look or polled or reach == DEVICE
            self._tell_beside(waves, mask, offsets, width.size, SHARED_READ if shared else READ)
        if first_look:
            pass
        elif store is waves.lds:
            kind = LdsAccessKind(writes=False, polls=polled)
            self._access(waves, offsets, width.size, mask, kind)
        elif in_memory:
            if polled and not self._coherence.several:
                reach = max(reach, WORKGROUP)  # waves of a workgroup share the cache it looks into
            self._in_memory.load(self._lanes(waves, mask, reach), offsets, width.size)
        bits = self._undefined.load(waves, store, offsets, width, mask)
        if bits is not None:
            self._loaded.append((target, bits, mask))

    def stores(
        self, waves: Waves, store: ByteStore, offsets: Addresses, source: Register, width: Width,
        mask: Mask | None,
    ) -> None:  # fmt: skip
        """Find races, and undefined bits in what is stored; scratch memory keeps them."""
        if store is waves.lds:
            kind = LdsAccessKind(writes=True)
            self._access(waves, offsets, width.size, mask, kind, (source, width))
        elif store is waves.memory and not _of_host(waves, offsets):
            reach = self._coherence.store_reach(self._current)
            how = SHARED_WRITE if reach == DEVICE else WRITE
            self._tell_beside(waves, mask, offsets, width.size, how)
            lanes = self._lanes(waves, mask, reach)
            self._in_memory.store(lanes, offsets, source, width)
        chosen = self._chosen(waves)
        self._undefined.store(waves, chosen, store, offsets, source, width, mask)

    def updates(
        self, waves: Waves, store: ByteStore, offsets: Addresses, source: Register, width: Width,
        mask: Mask | None,
    ) -> None:  # fmt: skip
        """Find races and undefined memory; what is written is defined."""
        if store is waves.lds:
            self._access(waves, offsets, width.size, mask, LdsAccessKind(writes=True, atomic=True))
        elif store is waves.memory and not _of_host(waves, offsets):
            how = SHARED_READ | SHARED_WRITE
            self._tell_beside(waves, mask, offsets, width.size, how)
            lanes = self._lanes(waves, mask, DEVICE)
            wins = None
            if "cmpswap" in self._current.name:
                wins = _exchanging(waves, store, offsets, source, width, mask)
            self._in_memory.update(lanes, offsets, width.size, self._returns, wins)
        self._undefined.load(waves, store, offsets, width, mask, used=True)
        self._undefined.overwrite(store, offsets, width.size)

    def fetches(self, waves: Waves, offsets: Addresses, width: Width, mask: Mask | None) -> None:
        """Find races and undefined memory, of what is on its way to LDS."""
        self._tell_beside(waves, mask, offsets, width.size, READ)
        lanes = self._lanes(waves, mask, self._coherence.reach(self._current))
        self._in_memory.load(lanes, offsets, width.size)
        self._undefined.load(waves, waves.memory, offsets, width, mask)

    def fills(self, waves: Waves, offsets: Addresses, size: int, mask: Mask | None) -> None:
        """Find races; `vmcnt` waits for the bytes, which are defined."""
        self._access(waves, offsets, size, mask, LdsAccessKind(writes=True, through="vmcnt"))
        self._undefined.overwrite(waves.lds, offsets, size)

    def clears(self, waves: Waves, target: Register, width: Width, mask: Mask) -> None:
        """Zeros are as good as any value: the register is written."""

    def writer(self, waves: Waves, store: ByteStore, offset: int) -> str:
        """Who has written last to the LDS or to global memory."""
        if store is waves.lds:
            return self._races.writer(offset)
        return self._in_memory.writer(offset) if store is waves.memory else ""

    def disputed(self, waves: Waves, message: str, wave: int, lane: int) -> None:
        """Tell the fault: chips may differ in what the lane gets."""
        waves.fault("disputed-bounds", message, wave, lane)

    def misplaced(self, waves: Waves, message: str, wave: int) -> None:
        """Tell the fault."""
        waves.fault("misaligned", message, wave)

    def scalar_stores(
        self, waves: Waves, chosen: npt.NDArray[np.int64], offsets: Addresses, words: int,
        updates: bool,
    ) -> None:  # fmt: skip
        """Find undefined memory that is combined with; what is written is defined."""
        if updates:
            self._undefined.scalar_load(waves, chosen, offsets, words)
        self._undefined.overwrite(waves.memory, offsets, 4 * words)

    def scalar_loads(self, waves: Waves, offsets: Addresses, target: Register) -> None:
        """Kernel arguments, most often, which are always written."""
        if self._beside is not None:
            self._beside.scalar_accesses(waves, offsets, 4 * target.count)


def _of_host(waves: Waves, offsets: Addresses) -> bool:
    """Whether lanes access what they call the host by: that is the device library's to order."""
    host = waves.memory.host
    return host is not None and bool(offsets.size) and int(offsets.min()) >= host.start


def _exchanging(
    waves: Waves, store: ByteStore, offsets: Addresses, source: Register, width: Width,
    mask: Mask | None,
) -> Mask:  # fmt: skip
    """Which lanes of a compare and swap find what they expect: the first ones at their places."""
    words = width.size // 4
    expected = Register(source.bank, source.index + words, words)
    flat = offsets.reshape(-1)
    content = Brought(waves, mask, store, expected, width, width.size, 0).content()
    there = store.load_words(flat, words)
    finds: Mask = (np.ascontiguousarray(there.T).view(np.uint8) == content).all(axis=1)
    first = np.zeros_like(finds)
    _, places = np.unique(np.where(finds, flat, -1), return_index=True)
    first[places] = True
    return finds & first
