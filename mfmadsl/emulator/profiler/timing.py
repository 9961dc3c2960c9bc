"""A cycle model of one compute unit: four SIMDs with several waves each, LDS and memory.

Every SIMD has a turn to issue each four cycles, and in it one instruction of each kind, from
different waves, the oldest first and those with a higher `s_setprio` before them. An instruction
waits for its unit, for the result of a matrix instruction that it reads, for the counter that an
`s_waitcnt` names, and at a barrier for the waves of its workgroup. LDS and the path to memory are
shared by the SIMDs; LDS instructions and a wave's loads and stores complete in order. What is in
the vector L1 cache when a load is sent comes from there: in the model's time, not in the order in
which the emulator has run the waves.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.wait import Counter as WaitCounter
from mfmadsl.emulator.machine.wait import wait_counts
from mfmadsl.emulator.profiler.cost import SLOT, busy_cycles, issue_cycles
from mfmadsl.emulator.profiler.record import Trace
from mfmadsl.emulator.profiler.vector_cache import Policy, VectorCache, clears_cache, policy_of
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.model import Architecture

_FAR = 1 << 60
SLEEP, _SLEEP_BITS = 64, 0x7F
"""Cycles of each unit that a wave sleeps, and the bits that count them (CDNA3 ISA, S_SLEEP)."""


@dataclass(frozen=True)
class Event:
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
    """What the model gives. `busy` and `stalls` are in cycles, summed over SIMDs and waves.

    `l2_bytes` are those of the cache lines that go between the L2 and the compute unit, by the
    place of the instruction: of loads what the vector L1 cache has not, of stores all.
    """

    cycles: int
    busy: Mapping[str, int]
    stalls: Mapping[str, int]
    events: tuple[Event, ...]
    l2_bytes: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Step:
    """What of an instruction the model needs."""

    kind: str  # valu, matrix, salu, lds, vmem, smem, wait, barrier, end
    issue: int
    busy: int
    reads: tuple[tuple[str, int], ...] = ()
    writes: tuple[tuple[str, int], ...] = ()
    waits: Mapping[WaitCounter, int] = field(default_factory=dict)
    priority: int | None = None
    policy: Policy = "keep"
    clears: bool = False


@dataclass
class _Wave:
    number: int
    group: int
    simd: int
    trace: Trace
    at: int = 0
    ready: int = 0
    priority: int = 0
    results: dict[tuple[str, int], int] = field(default_factory=dict)
    vmcnt: deque[int] = field(default_factory=deque)
    lgkmcnt: deque[int] = field(default_factory=deque)
    waiting: bool = False

    @property
    def ended(self) -> bool:
        return self.at >= len(self.trace.places)


def simulate(
    chip: Architecture,
    program: Sequence[Instruction],
    operations: Mapping[int, Operation],
    traces: Sequence[Trace],
    waves_per_group: int,
) -> Timing:
    """Run the waves of resident workgroups through the model."""
    return _Unit(chip, program, operations, traces, waves_per_group).run()


class _Unit:
    def __init__(
        self,
        chip: Architecture,
        program: Sequence[Instruction],
        operations: Mapping[int, Operation],
        traces: Sequence[Trace],
        waves_per_group: int,
    ) -> None:
        self._chip = chip
        self._steps = {
            place: _step(chip, instruction, operations.get(place))
            for place, instruction in enumerate(program)
        }
        self._waves = [
            _Wave(i, i // waves_per_group, i % chip.simds, trace) for i, trace in enumerate(traces)
        ]
        self._free: Counter[tuple[str, int]] = Counter()
        self._busy: Counter[str] = Counter()
        self._stalls: Counter[str] = Counter()
        self._events: list[Event] = []
        self._cache = VectorCache(chip)
        self._l2_bytes: Counter[int] = Counter()

    def run(self) -> Timing:
        now, running = 0, list(self._waves)
        while running:
            next_time = _FAR
            taken: set[tuple[str, int]] = set()
            blocked: list[str] = []
            running.sort(key=lambda wave: (-wave.priority, wave.number))
            for wave in running:
                until, reason = self._try(wave, now, taken)
                next_time = min(next_time, until)
                if reason:
                    blocked.append(reason)
            step = max(SLOT, -(-(next_time - now) // SLOT) * SLOT) if next_time < _FAR else SLOT
            for reason in blocked:
                self._stalls[reason] += step
            now += step
            running = [wave for wave in running if not wave.ended]
        last = max(
            [now]
            + [event.start + event.busy for event in self._events]
            + [time for wave in self._waves for time in wave.vmcnt]
        )
        events = tuple(self._events)
        return Timing(last, dict(self._busy), dict(self._stalls), events, dict(self._l2_bytes))

    def _try(self, wave: _Wave, now: int, taken: set[tuple[str, int]]) -> tuple[int, str]:
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

    def _needs(self, wave: _Wave, step: _Step, now: int) -> tuple[int, str]:
        for name, count in step.waits.items():
            queue = wave.vmcnt if name == "vmcnt" else wave.lgkmcnt
            while queue and queue[0] <= now:
                queue.popleft()
            if len(queue) > count:
                return queue[len(queue) - count - 1], "memory" if name == "vmcnt" else "LDS"
        late = max((wave.results.get(r, 0) for r in (*step.reads, *step.writes)), default=0)
        if late > now:
            return late, "matrix result"
        unit = self._unit_of(step, wave)
        if unit is not None and self._free[unit] > now:
            return self._free[unit], f"busy {unit[0]}"
        return now, ""

    @staticmethod
    def _unit_of(step: _Step, wave: _Wave) -> tuple[str, int] | None:
        return (step.kind, wave.simd) if step.kind in ("matrix", "valu") else None

    def _issue(self, wave: _Wave, step: _Step, place: int, now: int) -> None:
        cost, lines = wave.trace.costs[wave.at], wave.trace.lines.get(wave.at)
        wave.at += 1
        wave.ready = now + step.issue
        start, busy, simd = now, step.busy, wave.simd
        if step.priority is not None:
            wave.priority = step.priority
        if step.kind in ("matrix", "valu"):
            self._free[step.kind, wave.simd] = now + busy
            if step.kind == "matrix":
                for register in step.writes:
                    wave.results[register] = now + busy
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
            sent = self._free["vmem", -1] = start + busy
            done = sent + self._chip.l2_latency
            if lines is not None:
                done, missed = self._cache.load(lines, step.policy, sent)
                cost = missed * self._chip.line_bytes
            self._l2_bytes[place] += cost
            wave.vmcnt.append(max(done, wave.vmcnt[-1] if wave.vmcnt else 0))
        elif step.clears:
            self._cache.clear()
        self._busy[step.kind] += busy
        self._events.append(Event(now, start, busy, step.kind, simd, wave.number, place))

    def _wait_at_barrier(self, wave: _Wave, now: int) -> tuple[int, str]:
        wave.waiting = True
        group = [w for w in self._waves if w.group == wave.group and not w.ended]
        if not all(w.waiting for w in group):
            return _FAR, "barrier"
        for each in group:
            each.waiting = False
            each.at += 1
            each.ready = now + SLOT
        return now + SLOT, ""


def _step(chip: Architecture, instruction: Instruction, operation: Operation | None) -> _Step:
    name = instruction.name
    if name == "s_waitcnt":
        return _Step("wait", SLOT, 0, waits=wait_counts(instruction.modifiers["argument"]))
    if name == "s_barrier":
        return _Step("barrier", SLOT, 0)
    if name == "s_nop":
        return _Step("wait", SLOT * (int(instruction.modifiers["argument"], 0) + 1), 0)
    if name == "s_sleep":
        asked = int(instruction.modifiers["argument"], 0) & _SLEEP_BITS
        return _Step("wait", max(SLOT, asked * SLEEP), 0)
    if name == "s_setprio":
        return _Step("wait", SLOT, 0, priority=int(instruction.modifiers["argument"], 0))
    if operation is None:
        return _Step("salu", SLOT, SLOT, clears=clears_cache(instruction))
    kind = "vmem" if operation.unit == "flat" else operation.unit
    reads = tuple((r.register.bank, i) for r in operation.reads for i in r.register.indices)
    writes = tuple((r.bank, i) for r in operation.writes for i in r.indices)
    issue, busy = issue_cycles(chip, operation), busy_cycles(chip, operation)
    return _Step(kind, issue, busy, reads, writes, policy=policy_of(instruction))
