"""What every wave executes, step by step, and what each access to memory costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.error import Fault
from mfmadsl.emulator.machine.bits import Array, Mask
from mfmadsl.emulator.machine.memory import Addresses, ByteStore
from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.watch import Watch
from mfmadsl.emulator.machine.wave import LANES, Waves
from mfmadsl.emulator.machine.width import Width
from mfmadsl.emulator.profiler.lds_cycles import lds_cycles
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Register
from mfmadsl.model import Architecture

_WORD = 4  # bytes
_SECTOR = 32
"""Bytes that the L2 writes at least: it keeps what is stored until a line has been filled (ROCm
Compute Profiler, "L2 cache": writes of 32 and of 64 bytes)."""


@dataclass
class Trace:
    """The steps of one wave: the place of each instruction in the program, and its cost.

    The cost is in cycles of the LDS, or in bytes of cache lines that the lanes touch. Which lines
    those of a load are, `lines` says of its step, but not of scratch memory; and `sectors` the
    bytes of the sectors that a store writes.
    """

    group: int
    places: list[int] = field(default_factory=list)
    costs: list[int] = field(default_factory=list)
    lines: dict[int, list[int]] = field(default_factory=dict)
    sectors: dict[int, int] = field(default_factory=dict)


@dataclass
class TrafficRecord:
    """What all accesses of one instruction have moved and cost."""

    cycles: int = 0
    least_cycles: int = 0
    bytes: int = 0
    line_bytes: int = 0


class Recorder:
    """Watches the workgroups that share a compute unit."""

    def __init__(self, chip: Architecture) -> None:
        self.traces: list[Trace] = []
        self.traffic: dict[int, TrafficRecord] = {}
        self.operations: dict[int, Operation] = {}
        self._chip = chip

    def behind(self, first: Recorder) -> Recorder:
        """What was recorded of others and then here, as of workgroups of one compute unit."""
        found = Recorder(self._chip)
        found.traces = [*first.traces, *self.traces]
        found.operations = {**first.operations, **self.operations}
        for each in (first.traffic, self.traffic):
            for place, traffic in each.items():
                own = found.traffic.setdefault(place, TrafficRecord())
                own.cycles += traffic.cycles
                own.least_cycles += traffic.least_cycles
                own.bytes += traffic.bytes
                own.line_bytes += traffic.line_bytes
        return found

    def starts(self, waves: Waves, scalars: int) -> Recording:
        """Begin a trace for each of these waves, and record into it."""
        traces = [Trace(int(group)) for group in waves.position.groups[waves.workgroup]]
        self.traces += traces
        return Recording(self._chip, traces, self.traffic, self.operations)

    def ends(self, fault: Fault) -> bool:
        """There is no profile of what goes wrong."""
        return False


class Recording(Watch):
    """Watches waves that run together: `traces` are theirs, in order, the rest is shared."""

    def __init__(
        self,
        chip: Architecture,
        traces: Sequence[Trace],
        traffic: dict[int, TrafficRecord],
        operations: dict[int, Operation],
    ) -> None:
        self._chip, self._traces = chip, traces
        self._traffic, self._operations = traffic, operations

    def _step(self, waves: Waves) -> None:
        for wave in waves.index:
            trace = self._traces[wave]
            trace.places.append(waves.pc - 1)
            trace.costs.append(0)

    def before(self, waves: Waves, instruction: Instruction, operation: Operation) -> None:
        """Record the instruction as a step of each wave, at no cost as yet."""
        self._operations[waves.pc - 1] = operation
        self._step(waves)

    def after(self, waves: Waves, instruction: Instruction, operation: Operation) -> None:
        """What it has done is known from what it was about to do."""

    def passes(self, waves: Waves, instruction: Instruction) -> None:
        """Record the instruction as a step of each wave."""
        self._step(waves)

    def barrier(self, groups: Sequence[Waves]) -> None:
        """The model finds out by itself who waits for whom."""

    def _add(self, waves: Waves, costs: Array) -> None:
        for wave, cost in zip(waves.index, costs, strict=True):
            self._traces[wave].costs[-1] += int(cost)

    def _access(
        self, waves: Waves, store: ByteStore, offsets: Addresses, size: int, mask: Mask | None,
        reads: bool,
    ) -> None:  # fmt: skip
        if store is waves.lds:
            self._lds(waves, offsets, size, mask, reads)
        elif store is waves.scratch:
            self._scratch(waves, offsets, size, mask)
        else:
            self._global(waves, offsets, size, mask, reads)

    def _lds(
        self, waves: Waves, offsets: Addresses, size: int, mask: Mask | None, reads: bool
    ) -> None:
        addresses, active = _by_lane(waves, offsets, mask)
        cycles, least = lds_cycles(
            self._chip, addresses % max(1, waves.lds.stride), active, size, reads
        )
        traffic = self._traffic.setdefault(waves.pc - 1, TrafficRecord())
        traffic.cycles += int(cycles.sum())
        traffic.least_cycles += int(least.sum())
        traffic.bytes += int(active.sum()) * size
        self._add(waves, cycles)

    def _global(
        self, waves: Waves, offsets: Addresses, size: int, mask: Mask | None, loads: bool
    ) -> None:
        addresses, active = _by_lane(waves, offsets, mask)
        ends = np.stack([addresses, addresses + size - 1])
        touched = self._touched(waves, ends, active, size)
        stored = () if loads else self._distinct(waves, ends, active, _SECTOR)
        for wave, lines in zip(waves.index, touched, strict=True):
            trace = self._traces[wave]
            if loads:
                trace.lines.setdefault(len(trace.places) - 1, []).extend(lines)
        for wave, sectors in zip(waves.index, stored, strict=False):
            trace = self._traces[wave]
            at = len(trace.places) - 1
            trace.sectors[at] = trace.sectors.get(at, 0) + len(sectors) * _SECTOR

    def _scratch(self, waves: Waves, offsets: Addresses, size: int, mask: Mask | None) -> None:
        """Words of a wave's lanes lie side by side, as the hardware swizzles them (CDNA3 ISA,
        "Scratch Memory Swizzle")."""
        addresses, active = _by_lane(waves, offsets, mask)
        own = addresses % waves.scratch.stride
        first, last = own // _WORD, (own + size - 1) // _WORD
        words = np.arange(size // _WORD + 2)[:, None, None]
        swizzled = np.minimum(first + words, last) * LANES + np.arange(LANES)
        self._touched(waves, swizzled * _WORD, active, size)

    @staticmethod
    def _distinct(waves: Waves, places: Array, active: Mask, unit: int) -> list[list[int]]:
        """The numbers of units of so many bytes with `places`, of each wave."""
        numbers = places // unit
        return [distinct(numbers[:, i, active[i]]).tolist() for i in range(waves.count)]

    def _touched(self, waves: Waves, places: Array, active: Mask, size: int) -> list[list[int]]:
        """The cache lines with bytes at `places` (bytes of an access, count, 64), of each wave."""
        lines = self._distinct(waves, places, active, self._chip.line_bytes)
        costs = np.array([len(each) * self._chip.line_bytes for each in lines], np.int64)
        traffic = self._traffic.setdefault(waves.pc - 1, TrafficRecord())
        traffic.bytes += int(active.sum()) * size
        traffic.line_bytes += int(costs.sum())
        self._add(waves, costs)
        return lines

    def loads(
        self, waves: Waves, store: ByteStore, offsets: Addresses, target: Register, width: Width,
        mask: Mask | None,
    ) -> None:  # fmt: skip
        """Add the cost of a load: cycles of the LDS, or bytes of cache lines."""
        self._access(waves, store, offsets, width.size, mask, reads=True)

    def stores(
        self, waves: Waves, store: ByteStore, offsets: Addresses, source: Register, width: Width,
        mask: Mask | None,
    ) -> None:  # fmt: skip
        """Add the cost of a store or an atomic: cycles of the LDS, or bytes of cache lines."""
        self._access(waves, store, offsets, width.size, mask, reads=False)

    updates = stores

    def fetches(self, waves: Waves, offsets: Addresses, width: Width, mask: Mask | None) -> None:
        """Add the bytes of cache lines that are read on their way to LDS."""
        self._global(waves, offsets, width.size, mask, loads=True)

    def fills(self, waves: Waves, offsets: Addresses, size: int, mask: Mask | None) -> None:
        """LDS is written when the data comes, beside what else it does."""

    def clears(self, waves: Waves, target: Register, width: Width, mask: Mask) -> None:
        """Nothing is fetched for lanes that are out of bounds."""

    def disputed(self, waves: Waves, message: str, wave: int, lane: int) -> None:
        """The manual's rule is the one that times are of."""

    def scalar_loads(self, waves: Waves, offsets: Addresses, target: Register) -> None:
        """A load through the scalar cache costs its latency only."""

    def scalar_stores(
        self, waves: Waves, chosen: npt.NDArray[np.int64], offsets: Addresses, words: int,
        updates: bool,
    ) -> None:  # fmt: skip
        """Nor does a store through it cost more than that."""

    def collects(self, waves: Waves, fault: Fault) -> bool:
        """No fault is kept: the first one ends the profile."""
        return False


def distinct(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """As `np.unique`, of numbers that are not negative; its hash table costs more than sorting."""
    ordered = np.sort(numbers, axis=None)
    return ordered[np.diff(ordered, prepend=-1) != 0]


def _by_lane(waves: Waves, offsets: Addresses, mask: Mask | None) -> tuple[Array, Mask]:
    """Offsets as (count, 64), and which of them are accessed."""
    lanes = waves.lanes_of(mask)
    full = np.zeros(lanes.shape, np.int64)
    full[lanes] = offsets.reshape(-1)
    return full, lanes
