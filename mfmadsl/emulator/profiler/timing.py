"""A cycle model of one compute unit: four SIMDs with several waves each, LDS and memory.

Every SIMD has a turn to issue each four cycles, and in it one instruction of each kind, from
different waves, the oldest first and those with a higher `s_setprio` before them. An instruction
waits for its unit, for the result of a matrix instruction that it reads, for the counter that an
`s_waitcnt` names, and at a barrier for the waves of its workgroup. LDS and the path to memory are
shared by the SIMDs; LDS instructions and loads complete in order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.wait import Counter as WaitCounter
from mfmadsl.emulator.machine.wait import wait_counts
from mfmadsl.emulator.profiler.cost import SLOT, busy_cycles, issue_cycles
from mfmadsl.emulator.profiler.record import Trace
from mfmadsl.emulator.profiler.steady_state import FAR, SteadyState, WaveState
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.model import Architecture
from mfmadsl.model.traffic import Path

_PARTS = 1 << 10
"""Of a cycle, in which the path beyond the L2 is counted: whole numbers recur, fractions do not."""


class Event(NamedTuple):
    """One instruction in time: issued, then `busy` cycles from `start` on a unit of a SIMD.

    The SIMD is -1 for units that all share.
    """

    issued: int
    start: int
    busy: int
    unit: str
    simd: int
    wave: int
    place: int


@dataclass(frozen=True)
class Timing:
    """What the model gives. `busy` and `stalls` are in cycles, summed over SIMDs and waves."""

    cycles: int
    busy: Mapping[str, int]
    stalls: Mapping[str, int]
    events: tuple[Event, ...]


@dataclass(frozen=True)
class _Step:
    """What of an instruction the model needs."""

    kind: str  # valu, matrix, salu, lds, vmem, smem, wait, barrier, end
    issue: int
    busy: int
    touches: tuple[tuple[str, int], ...] = ()
    writes: tuple[tuple[str, int], ...] = ()
    waits: Mapping[WaitCounter, int] = field(default_factory=dict)
    priority: int | None = None
    stores: bool = False


def simulate(
    chip: Architecture,
    program: Sequence[Instruction],
    operations: Mapping[int, Operation],
    traces: Sequence[Trace],
    waves_per_group: int,
    loop_end: int | None = None,
    path: Path | None = None,
) -> Timing:
    """Run the waves of resident workgroups through the model.

    With the place of the branch that ends a loop, turns that would be like those before them are
    not gone through one by one. Without a path to memory beyond the L2, all that is loaded is in
    the L2.
    """
    return _Unit(chip, program, operations, traces, waves_per_group, loop_end, path).run()


class _Unit:
    def __init__(
        self,
        chip: Architecture,
        program: Sequence[Instruction],
        operations: Mapping[int, Operation],
        traces: Sequence[Trace],
        waves_per_group: int,
        loop_end: int | None,
        path: Path | None,
    ) -> None:
        self._chip, self._path = chip, path
        self._beyond = 0  # when the path beyond the L2 is free, in parts of a cycle
        self._steady = SteadyState(loop_end)
        self._steps = {
            place: _step(instruction, operations.get(place))
            for place, instruction in enumerate(program)
        }
        self._waves = [
            WaveState(i, i // waves_per_group, i % chip.simds, trace)
            for i, trace in enumerate(traces)
        ]
        self._free: Counter[tuple[str, int]] = Counter()
        self._busy: Counter[str] = Counter()
        self._stalls: Counter[str] = Counter()
        self._events: list[Event] = []
        self._reordered = self._ended = False

    def run(self) -> Timing:
        now, running = 0, list(self._waves)
        while running:
            now += self._repeat(now, running)
            next_time = FAR
            taken: set[tuple[str, int]] = set()
            blocked: list[str] = []
            if self._reordered:
                running.sort(key=lambda wave: (-wave.priority, wave.number))
                self._reordered = False
            for wave in running:
                if wave.blocked <= now:
                    wave.blocked, wave.reason = self._try(wave, now, taken)
                next_time = min(next_time, wave.blocked)
                if wave.reason:
                    blocked.append(wave.reason)
            step = max(SLOT, -(-(next_time - now) // SLOT) * SLOT) if next_time < FAR else SLOT
            for reason in blocked:
                self._stalls[reason] += step
            now += step
            if self._ended:
                running = [wave for wave in running if not wave.ended]
                self._ended = False
        last = max(
            [now, self._beyond // _PARTS]
            + [event.start + event.busy for event in self._events]
            + [time for wave in self._waves for time in wave.vmcnt]
        )
        return Timing(last, dict(self._busy), dict(self._stalls), tuple(self._events))

    def _repeat(self, now: int, running: Sequence[WaveState]) -> int:
        """Let what has just happened happen again as often as it would; how many cycles it took."""
        ahead = [(unit, time - now) for unit, time in sorted(self._free.items()) if time > now]
        shared = (tuple(ahead), max(0, self._beyond - now * _PARTS), self._reordered)
        counters = (self._busy, self._stalls)
        found = self._steady.repetition(now, running, shared, len(self._events), counters)
        if found is None:
            return 0
        cycles = found.times * found.cycles
        self._free = Counter({unit: time + cycles for unit, time in self._free.items()})
        self._beyond += cycles * _PARTS
        for counter, new in zip(counters, found.counted, strict=True):
            for name, count in new.items():
                counter[name] += found.times * count
        again = self._events[found.first :]
        for turn in range(1, found.times + 1):
            late = turn * found.cycles
            self._events += [Event(x[0] + late, x[1] + late, *x[2:]) for x in again]
        return cycles

    def _try(self, wave: WaveState, now: int, taken: set[tuple[str, int]]) -> tuple[int, str]:
        """Issue the next instruction of a wave if it can: when it can go on, and what it lacks."""
        if wave.ready > now:
            return wave.ready, ""
        place = wave.trace.places[wave.at]
        step = self._steps[place]
        if step.kind == "barrier":
            return self._wait_at_barrier(wave, now)
        until, reason = self._needs(wave, step, now)
        if until > now:
            return until, reason
        port = ("valu" if step.kind == "matrix" else step.kind, wave.simd)
        if step.kind not in ("wait", "end") and port in taken:
            return now + SLOT, f"issue of {port[0]}"
        taken.add(port)
        self._issue(wave, step, place, now)
        return wave.ready, ""

    def _needs(self, wave: WaveState, step: _Step, now: int) -> tuple[int, str]:
        for name, count in step.waits.items():
            queue = wave.vmcnt if name == "vmcnt" else wave.lgkmcnt
            while queue and queue[0] <= now:
                queue.popleft()
            if len(queue) > count:
                return queue[len(queue) - count - 1], "memory" if name == "vmcnt" else "LDS"
        if wave.last_result > now:
            late = max([wave.results.get(register, 0) for register in step.touches], default=0)
            if late > now:
                return late, "matrix result"
        unit = self._unit_of(step, wave)
        if unit is not None and self._free[unit] > now:
            return self._free[unit], f"busy {unit[0]}"
        return now, ""

    @staticmethod
    def _unit_of(step: _Step, wave: WaveState) -> tuple[str, int] | None:
        return (step.kind, wave.simd) if step.kind in ("matrix", "valu") else None

    def _issue(self, wave: WaveState, step: _Step, place: int, now: int) -> None:
        cost = wave.trace.costs[wave.at]
        wave.ready = now + step.issue
        self._advance(wave)
        start, busy, simd = now, step.busy, wave.simd
        if step.priority is not None:
            wave.priority, self._reordered = step.priority, True
        if step.kind in ("matrix", "valu"):
            self._free[step.kind, wave.simd] = now + busy
            if step.kind == "matrix":
                wave.results |= dict.fromkeys(step.writes, now + busy)
                wave.last_result = max(wave.last_result, now + busy)
        elif step.kind == "lds":
            start, busy, simd = max(now, self._free["lds", -1]), max(1, cost), -1
            self._free["lds", -1] = start + busy
            wave.lgkmcnt.append(max([start + busy + self._chip.lds_latency, *wave.lgkmcnt]))
        elif step.kind == "smem":
            # What waits for a scalar load waits for all that the counter counts.
            wave.lgkmcnt.append(max([now + self._chip.scalar_latency, *wave.lgkmcnt]))
        elif step.kind == "vmem":
            start, simd = max(now, self._free["vmem", -1]), -1
            busy = max(SLOT, cost // self._chip.l1_bytes_per_cycle)
            self._free["vmem", -1] = start + busy
            done = start + busy + self._chip.l2_latency
            if self._path is not None:
                done = max(done, self._arrival(self._path, step, cost, start))
            wave.vmcnt.append(max(done, wave.vmcnt[-1] if wave.vmcnt else 0))  # it is in order
        self._busy[step.kind] += busy
        self._events.append(Event(now, start, busy, step.kind, simd, wave.number, place))

    def _arrival(self, path: Path, step: _Step, line_bytes: int, start: int) -> int:
        """When lines come that are asked for at `start`, behind those asked for before."""
        each = path.written if step.stores else path.read
        self._beyond = max(self._beyond, start * _PARTS) + round(line_bytes * each * _PARTS)
        return 0 if step.stores else round(self._beyond / _PARTS + path.latency)

    def _wait_at_barrier(self, wave: WaveState, now: int) -> tuple[int, str]:
        wave.waiting = True
        group = [w for w in self._waves if w.group == wave.group and not w.ended]
        if not all(w.waiting for w in group):
            return FAR, "barrier"
        for each in group:
            each.waiting = False
            each.ready = each.blocked = now + SLOT
            each.reason = ""
            self._advance(each)
        return now + SLOT, ""

    def _advance(self, wave: WaveState) -> None:
        wave.at += 1
        if wave.ended:
            self._ended = True
            for other in self._waves:  # which may have been the last that a barrier waited for
                if other.group == wave.group and other.waiting:
                    other.blocked = 0


def _step(instruction: Instruction, operation: Operation | None) -> _Step:
    name = instruction.name
    if name == "s_waitcnt":
        return _Step("wait", SLOT, 0, waits=wait_counts(instruction.modifiers["argument"]))
    if name == "s_barrier":
        return _Step("barrier", SLOT, 0)
    if name == "s_nop":
        return _Step("wait", SLOT * (int(instruction.modifiers["argument"], 0) + 1), 0)
    if name == "s_setprio":
        return _Step("wait", SLOT, 0, priority=int(instruction.modifiers["argument"], 0))
    if operation is None:
        return _Step("salu", SLOT, SLOT)
    kind = "vmem" if operation.unit == "flat" else operation.unit
    reads = tuple((r.register.bank, i) for r in operation.reads for i in r.register.indices)
    writes = tuple((r.bank, i) for r in operation.writes for i in r.indices)
    touches = tuple(dict.fromkeys((*reads, *writes)))
    return _Step(
        kind, issue_cycles(operation), busy_cycles(operation), touches, writes,
        stores="_store" in name,
    )  # fmt: skip
