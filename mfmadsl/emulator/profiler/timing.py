"""A cycle model of one compute unit: four SIMDs with several waves each, LDS and memory.

Every SIMD has an issue slot each four cycles, and in it one instruction of each kind, from
different waves, the oldest first and those with a higher `s_setprio` before them. An instruction
waits for its unit, for the result of a matrix instruction that it reads, for the counter that an
`s_waitcnt` names, and at a barrier for the waves of its workgroup. LDS and the path to memory are
shared by the SIMDs; LDS instructions and a wave's loads and stores complete in order. A wave does
not go on before its request has room in the queue of the LDS or of memory, and one to store into
the LDS sends its data first. What is in the vector L1 cache when a load is sent comes from there:
in the model's time, not in the order in which the emulator has run the waves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.profiler.cost import SLOT
from mfmadsl.emulator.profiler.queues import LinesInFlight, RequestQueue
from mfmadsl.emulator.profiler.record import Trace
from mfmadsl.emulator.profiler.steady_state import FAR, Repetition, SteadyState, WaveState
from mfmadsl.emulator.profiler.timed_step import TimedStep, timed_step
from mfmadsl.emulator.profiler.vector_cache import Policy, VectorCache
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.model import Architecture
from mfmadsl.model.traffic import Path

_PARTS = 1 << 10
"""The path beyond the L2 is counted in this part of a cycle: whole numbers recur."""

_SIMDS_OF_QUEUE = 2
"""SIMDs that share a queue of the LDS (`Architecture`, Q)."""


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


class _Load(NamedTuple):
    """A load through the vector L1 cache: who sent it when, when what it had not was fetched, when
    all of it was there, and the bytes of lines that it had not."""

    wave: int
    at: int
    policy: Policy
    sent: int
    fetched: int
    done: int
    missed: int


@dataclass(frozen=True)
class Timing:
    """What the model gives. `busy` and `stalls` are in cycles, summed over SIMDs and waves.

    `l2_bytes` are those of the cache lines that go between the L2 and the compute unit, by the
    place of the instruction: of loads what the vector L1 cache has not, of stores the sectors.
    """

    cycles: int
    busy: Mapping[str, int]
    stalls: Mapping[str, int]
    events: tuple[Event, ...]
    l2_bytes: Mapping[int, int] = field(default_factory=dict)


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

    With the place of the branch that ends a loop, iterations that would be like those before them
    are not gone through one by one. Without a path to memory beyond the L2, all that is loaded is
    in the L2.
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
            place: timed_step(chip, instruction, operations.get(place))
            for place, instruction in enumerate(program)
        }
        # What `lgkmcnt` counts: without LDS instructions it is no LDS that is waited for.
        lds = any(step.kind == "lds" for step in self._steps.values())
        self._short = "LDS" if lds else "scalar loads"
        self._waves = [
            WaveState(i, i // waves_per_group, i % chip.simds, trace)
            for i, trace in enumerate(traces)
        ]
        self._free: Counter[tuple[str, int]] = Counter()
        self._busy: Counter[str] = Counter()
        self._stalls: Counter[str] = Counter()
        self._events: list[Event] = []
        self._reordered = self._ended = False
        self._cache = VectorCache(chip)
        self._lines = LinesInFlight(chip.l1_bytes)
        self._memory = RequestQueue(chip.memory_queue)
        pairs = range(-(-chip.simds // _SIMDS_OF_QUEUE))
        self._lds = [RequestQueue(chip.lds_queue) for _ in pairs]
        self._queues: tuple[LinesInFlight | RequestQueue, ...]
        self._queues = (self._lines, self._memory, *self._lds)
        self._l2_bytes: Counter[int] = Counter()
        self._loads: list[_Load] = []
        self._counters: tuple[Counter[Any], ...] = (self._busy, self._stalls, self._l2_bytes)

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
        events = tuple(self._events)
        return Timing(last, dict(self._busy), dict(self._stalls), events, dict(self._l2_bytes))

    def _repeat(self, now: int, running: Sequence[WaveState]) -> int:
        """Let what has just happened happen again as often as it would; how many cycles it took."""
        if not self._steady.comes_to(running):
            return 0
        ahead = [(unit, time - now) for unit, time in sorted(self._free.items()) if time > now]
        queues = tuple(queue.ahead(now) for queue in self._queues)
        shared = (tuple(ahead), max(0, self._beyond - now * _PARTS), self._reordered, queues)
        reached = (len(self._events), len(self._loads))
        found = self._steady.repetition(now, running, shared, reached, self._counters)
        if found is None:
            return 0
        times = self._loaded_again(found)
        cycles = times * found.cycles
        found.shift(running, times)
        self._free = Counter({unit: time + cycles for unit, time in self._free.items()})
        self._beyond += cycles * _PARTS
        for queue in self._queues:
            queue.shift(cycles)
        for counter, new in zip(self._counters, found.counted, strict=True):
            for name, count in new.items():
                counter[name] += times * count
        again = self._events[found.first[0] :]
        for iteration in range(1, times + 1):
            late = iteration * found.cycles
            self._events += [Event(x[0] + late, x[1] + late, *x[2:]) for x in again]
        return cycles

    def _loaded_again(self, found: Repetition) -> int:
        """How often the cache gives as much again, as late; it is left as it is after that."""
        again = self._loads[found.first[1] :]
        for iteration in range(1, found.times + 1):
            late, before = iteration * found.cycles, self._cache.copy()
            for load in again:
                step = load.at + iteration * found.lengths[load.wave]
                lines = self._waves[load.wave].trace.lines.get(step, [])
                missed = self._cache.missing(lines, load.policy) * self._chip.line_bytes
                done = self._cache.load(lines, load.policy, load.sent + late, load.fetched + late)
                if (missed, done) != (load.missed, load.done + late):
                    self._cache = before
                    return iteration - 1
        return found.times

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

    def _needs(self, wave: WaveState, step: TimedStep, now: int) -> tuple[int, str]:
        for name, count in step.waits.items():
            queue = wave.vmcnt if name == "vmcnt" else wave.lgkmcnt
            while queue and queue[0] <= now:
                queue.popleft()
            if len(queue) > count:
                return queue[len(queue) - count - 1], "memory" if name == "vmcnt" else self._short
        if wave.last_result > now:
            late = max([wave.results.get(register, 0) for register in step.touches], default=0)
            if late > now:
                return late, "matrix result"
        entered = self._queue_of(step, wave)
        if entered is not None and (room := entered.room(now, wave.number)) > now:
            return room, f"queue of {'the LDS' if step.kind == 'lds' else 'memory'}"
        unit = self._unit_of(step, wave)
        if unit is not None and self._free[unit] > now:
            return self._free[unit], f"busy {unit[0]}"
        return now, ""

    def _queue_of(self, step: TimedStep, wave: WaveState) -> RequestQueue | None:
        if step.kind == "lds":
            return self._lds[wave.simd // _SIMDS_OF_QUEUE]
        return self._memory if step.kind == "vmem" else None

    @staticmethod
    def _unit_of(step: TimedStep, wave: WaveState) -> tuple[str, int] | None:
        return (step.kind, wave.simd) if step.kind in ("matrix", "valu") else None

    def _issue(self, wave: WaveState, step: TimedStep, place: int, now: int) -> None:
        at = wave.at
        cost = wave.trace.costs[at]
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
            self._lds[wave.simd // _SIMDS_OF_QUEUE].enter(wave.number, start + busy)
            wave.lgkmcnt.append(max([start + busy + self._chip.lds_latency, *wave.lgkmcnt]))
        elif step.kind == "smem":
            # What waits for a scalar load waits for all that the counter counts.
            wave.lgkmcnt.append(max([now + self._chip.scalar_latency, *wave.lgkmcnt]))
        elif step.kind == "vmem":
            missed, simd = self._missed(wave, at, step, cost), -1
            start = max(now, self._free["vmem", -1])
            if step.loads:
                start = self._lines.room(start, missed)
            busy = max(SLOT, cost // self._chip.l1_bytes_per_cycle)
            sent = self._free["vmem", -1] = start + busy
            self._memory.enter(wave.number, sent)
            self._l2_bytes[place] += missed
            done = self._moved(wave, at, step, missed, start, sent)
            wave.vmcnt.append(max(done, wave.vmcnt[-1] if wave.vmcnt else 0))  # it is in order
        elif step.clears:
            self._cache.clear()
        elif step.writes_back:
            there = now + self._chip.l2_latency
            if self._path is not None:
                there = max(there, self._beyond // _PARTS) + round(self._path.latency)
            wave.vmcnt.append(max(there, wave.vmcnt[-1] if wave.vmcnt else 0))
        self._busy[step.kind] += busy
        self._events.append(Event(now, start, busy, step.kind, simd, wave.number, place))

    def _missed(self, wave: WaveState, at: int, step: TimedStep, cost: int) -> int:
        """The bytes of the lines that a request has the L2 give, or gives to it."""
        lines = wave.trace.lines.get(at)
        if lines is None:
            return wave.trace.sectors.get(at, cost)
        return self._cache.missing(lines, step.policy) * self._chip.line_bytes

    def _moved(
        self, wave: WaveState, at: int, step: TimedStep, missed: int, start: int, sent: int
    ) -> int:
        """When lines are there that are asked for from `start` to `sent`, or have been written."""
        fetched = sent + self._chip.l2_latency
        if self._path is not None and missed:
            fetched = max(fetched, self._arrival(self._path, step, missed, start))
        if step.loads:
            self._lines.take(fetched, missed)
        if (lines := wave.trace.lines.get(at)) is None:
            return fetched
        done = self._cache.load(lines, step.policy, sent, fetched)
        self._loads.append(_Load(wave.number, at, step.policy, sent, fetched, done, missed))
        return done

    def _arrival(self, path: Path, step: TimedStep, line_bytes: int, start: int) -> int:
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
            place = each.trace.places[each.at]
            self._events.append(Event(now, now, 0, "barrier", each.simd, each.number, place))
            self._advance(each)
        return now + SLOT, ""

    def _advance(self, wave: WaveState) -> None:
        wave.at += 1
        if wave.ended:
            self._ended = True
            for other in self._waves:  # which may have been the last that a barrier waited for
                if other.group == wave.group and other.waiting:
                    other.blocked = 0
