"""`profile`: what a kernel executes, moves and waits for on one compute unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mfmadsl.argument import check_flag, check_integer, described
from mfmadsl.emulator.machine.launch import Launch, Load, load_arguments
from mfmadsl.emulator.machine.occupancy import Occupancy, occupancy
from mfmadsl.emulator.profiler.chip import ChipTime, chip_time, together
from mfmadsl.emulator.profiler.cost import SLOT, busy_cycles, check_costs
from mfmadsl.emulator.profiler.known_chip import chip_of
from mfmadsl.emulator.profiler.last_workgroup import last_workgroup
from mfmadsl.emulator.profiler.main_loop import main_loop
from mfmadsl.emulator.profiler.matrix_counts import are_confirmed, matrix_counts
from mfmadsl.emulator.profiler.record import Recorder, TrafficRecord
from mfmadsl.emulator.profiler.timing import Timing, simulate
from mfmadsl.emulator.profiler.uneven import mean_groups
from mfmadsl.emulator.profiler.work import simulate_some, work_of_launch
from mfmadsl.emulator.request import check_budget, check_progress
from mfmadsl.emulator.run import (
    BUDGET,
    Dimensions,
    Progress,
    Runnable,
    launch_of,
    launches_of,
    run_loaded,
    zeros_of,
)
from mfmadsl.emulator.text.assembly import Program
from mfmadsl.emulator.text.registers import (
    Registers,
    asked_scalar_registers,
    asked_vector_registers,
)
from mfmadsl.error import ArgumentError
from mfmadsl.model import Architecture, product_of


@dataclass(frozen=True)
class LdsAccess:
    """An LDS instruction: its line and text, and the cycles of one execution of one wave."""

    line: int
    instruction: str
    times: int
    cycles: float
    least_cycles: float


@dataclass(frozen=True)
class Section:
    """Some part of a kernel, counted over one wave, in instructions, cycles and bytes.

    `lines` are those of the assembly text. `line_bytes` is what the lanes' accesses touch, in
    whole cache lines; `l2_bytes` those of them that the vector L1 cache does not have, and those
    that are stored.
    """

    lines: tuple[int, int]
    times: int
    instructions: Mapping[str, int]
    matrix_cycles: int
    lds_cycles: int
    lds_conflict_cycles: int
    memory_bytes: int
    line_bytes: int
    l2_bytes: int

    @property
    def total(self) -> int:
        """How many instructions there are."""
        return sum(self.instructions.values())


@dataclass(frozen=True)
class Profile:
    """One kernel on one compute unit of a chip.

    It can hold the workgroups of `occupancy`; the grid gives it `workgroups`. `registers` are those
    that the kernel uses, and `allocated` the vector registers a lane that it is given: of both
    kinds together, or on gfx908 of each. `loop` is the main loop, once; `whole` the whole kernel of
    a wave. `limits` says what keeps it from being faster, the most important first. `launch` is its
    place among the launches of the work, from 0 on, and their number.
    """

    symbol: str
    chip: Architecture
    program: Program = field(repr=False)
    registers: Registers
    allocated: int
    lds_bytes: int
    occupancy: Occupancy
    workgroups: int
    waves: int
    whole: Section
    loop: Section | None
    lds: tuple[LdsAccess, ...] = field(repr=False)
    timing: Timing = field(repr=False)
    limits: tuple[str, ...]
    on_chip: ChipTime
    launch: tuple[int, int] = (0, 1)

    @property
    def matrix_bound(self) -> int:
        """Cycles that the matrix cores need for the work of all waves, if nothing else did."""
        return self.timing.busy.get("matrix", 0) // self.chip.simds

    @property
    def matrix_use(self) -> float:
        """The share of the time in which the matrix cores work, in the model."""
        return self.matrix_bound / max(1, self.timing.cycles)


def profile(
    kernel: Runnable,
    args: Sequence[Any],
    grid: Dimensions | None = None,
    block: Dimensions | None = None,
    *,
    lds_bytes: int | None = None,
    budget: int = BUDGET,
    full: bool = False,
    launch: int = 0,
    product: str | None = None,
    warm: bool = False,
    progress: Progress | None = None,
) -> Profile:
    """Run the workgroups that share one compute unit, and model how long they take.

    Takes what `emulate` takes, but leaves the arrays as they are. Of several launches it is the one
    of that number, counted from 0; those before it are not run, so that it finds other numbers in
    memory, though it does the same work with them unless it branches on them. The workgroups of the
    grid are dealt out to all compute units of the chip; with `full` one of them gets as many as it
    can hold, as it would of a larger grid.

    `on_chip` is the time of all launches on a whole product, such as "MI300X" or "MI325X"; without
    a name, on the first that has the chip. Each launch finds caches cold, or with `warm` as another
    launch with the same arguments has left them.

    Raises ArgumentError for a chip or product that is not known, a launch that there is not, and a
    workgroup that does not fit on the chip, and what `emulate` raises.
    """
    started = launches_of(kernel, args)
    if not started:
        raise ArgumentError("args: their result has no elements, so that nothing is launched")
    check_flag("full", full)
    check_flag("warm", warm)
    check_progress(progress)
    if not 0 <= check_integer("launch", launch) < len(started):
        raise ArgumentError(
            f"launch: is a number from 0 to {len(started) - 1}, not {described(launch)}"
        )
    found = []
    for number, (one, values) in enumerate(started):
        starting = launch_of(one, grid, block, lds_bytes)
        load = partial(load_arguments, starting, values, True)
        asked = budget, full, (number, len(started)), product, progress, bool(zeros_of(one)), warm
        found.append(profile_launch(starting, load, *asked))
    return replace(found[launch], on_chip=together([each.on_chip for each in found]))


def profile_launch(
    launch: Launch,
    load: Load,
    budget: int = BUDGET,
    full: bool = False,
    number: tuple[int, int] = (0, 1),
    product: str | None = None,
    progress: Progress | None = None,
    arrivals: bool = False,
    warm: bool = False,
) -> Profile:
    """As `profile`, of a launch whose memory `load` gives, afresh each time.

    Where workgroups count `arrivals`, the first of those that are shown is the last of its tile.
    """
    check_budget(budget)
    program = launch.program
    check_costs(program)
    chip = chip_of(program.arch)
    sold = product_of(chip.name, product)
    registers = program.registers
    asked = asked_vector_registers(program.directives, registers, chip.name)
    scalar = asked_scalar_registers(program.directives)
    held = occupancy(chip, asked, launch.lds_bytes, launch.waves_per_group, scalar)

    def recorded(counts: npt.NDArray[np.int64]) -> tuple[Recorder, npt.NDArray[np.int64]]:
        recorder, groups = Recorder(chip), _together(chip, held, counts, full)
        run_loaded(launch, load(), budget, recorder, groups, progress)
        return recorder, groups

    counts = matrix_counts(launch, load, budget)
    recorder, groups = recorded(counts)
    if not are_confirmed(counts, program, recorder.traces):
        counts = np.ones_like(counts)
        recorder, groups = recorded(counts)
    plain, last = recorder, None
    if arrivals and (last := last_workgroup(launch, load, int(groups[0]), budget)) is not None:
        others = Recorder(chip)
        if len(groups) > 1:
            run_loaded(launch, load(), budget, others, groups[1:], progress)
        recorder = others.behind(last.last)
    instructions, operations = program.instructions, recorder.operations
    waves = len(recorder.traces)
    executed = [0] * len(instructions)
    for trace in recorder.traces:
        for place in trace.places:
            executed[place] += 1
    body = main_loop(program, executed)
    loop_end = body[-1] if body else None
    timing = simulate(
        chip, instructions, operations, recorder.traces, launch.waves_per_group, loop_end
    )
    whole = _section(chip, program, recorder, timing, range(len(instructions)), executed, waves)
    loop = None
    if body is not None:
        times = max(1, executed[body[-1]])
        loop = _section(chip, program, recorder, timing, body, executed, times)
    accesses = [
        _lds_access(program, place, traffic, executed[place])
        for place, traffic in sorted(recorder.traffic.items())
        if traffic.least_cycles
    ]
    alike = timing
    if last is not None:
        alike = simulate(
            chip, instructions, plain.operations, plain.traces, launch.waves_per_group, loop_end
        )
    work = work_of_launch(launch, load, sold, plain, alike, loop_end, counts, budget)
    if last is not None:
        # Workgroups without a loop were looked at up to their ends, the last ones among them.
        work = last.added(work, reads=loop_end is not None)
    work = replace(work, warm=warm)
    simulated = partial(simulate_some, chip, launch, recorder, loop_end)
    return Profile(
        program.name, chip, program, registers, chip.granted(asked), launch.lds_bytes, held,
        len(groups), waves, whole, loop, tuple(accesses), timing, _limits(chip, timing, waves),
        chip_time(sold, chip, work, simulated), number,
    )  # fmt: skip


def _together(
    chip: Architecture, held: Occupancy, counts: npt.NDArray[np.int64], full: bool
) -> npt.NDArray[np.int64]:
    """Workgroups that a compute unit may have at once, those in the middle where some do more."""
    working = np.flatnonzero(counts)
    count = _resident(chip, held, len(working), full)
    if (counts[working] != counts[working[0]]).any():
        return mean_groups(counts, working, count)
    # Neighbours go to other compute units, as long as there are so many workgroups.
    stride = chip.compute_units if (count - 1) * chip.compute_units < len(working) else 1
    return working[np.arange(count) * stride]


def _resident(chip: Architecture, held: Occupancy, groups: int, full: bool) -> int:
    """How many workgroups the compute unit that gets most of them has at once."""
    given = groups if full else -(-groups // chip.compute_units)
    return min(held.groups, given)


def _section(
    chip: Architecture,
    program: Program,
    recorder: Recorder,
    timing: Timing,
    body: range,
    executed: Sequence[int],
    times: int,
) -> Section:
    kinds: Counter[str] = Counter()
    matrix = 0
    traffic = TrafficRecord()
    for place in body:
        count = executed[place]
        if not count:
            continue
        instruction = program.instructions[place]
        operation = recorder.operations.get(place)
        kind = operation.unit if operation else _control(instruction.name)
        kinds[kind] += count
        if operation is not None and kind == "matrix":
            matrix += count * busy_cycles(chip, operation)
        if (one := recorder.traffic.get(place)) is not None:
            traffic.cycles += one.cycles
            traffic.least_cycles += one.least_cycles
            if not one.least_cycles:
                traffic.bytes += one.bytes
                traffic.line_bytes += one.line_bytes
    used = [program.instructions[place].line for place in body if executed[place]]
    return Section(
        (used[0], used[-1]),
        times,
        {kind: count // times for kind, count in sorted(kinds.items())},
        matrix // times,
        traffic.cycles // times,
        (traffic.cycles - traffic.least_cycles) // times,
        traffic.bytes // times,
        traffic.line_bytes // times,
        sum(timing.l2_bytes.get(place, 0) for place in body) // times,
    )


def _control(name: str) -> str:
    if name == "s_waitcnt":
        return "wait"
    if name == "s_barrier":
        return "barrier"
    return "branch" if "branch" in name or name == "s_endpgm" else "other"


def _lds_access(program: Program, place: int, traffic: TrafficRecord, times: int) -> LdsAccess:
    instruction = program.instructions[place]
    return LdsAccess(
        instruction.line,
        instruction.text,
        times,
        traffic.cycles / times,
        traffic.least_cycles / times,
    )


def _limits(chip: Architecture, timing: Timing, waves: int) -> tuple[str, ...]:
    """What is busiest, and what waves wait for most."""
    cycles = max(1, timing.cycles)
    shared = {"LDS": "lds", "the path to memory": "vmem"}
    own = {"the matrix cores": "matrix", "the vector ALUs": "valu"}
    use = {name: timing.busy.get(unit, 0) / cycles for name, unit in shared.items()}
    use |= {name: timing.busy.get(unit, 0) / cycles / chip.simds for name, unit in own.items()}
    busiest = max(use, key=lambda name: use[name])
    told = [f"{busiest} are busy {use[busiest]:.0%} of the time".replace(
        "LDS are", "LDS is").replace("memory are", "memory is")]  # fmt: skip
    waits = sorted(timing.stalls.items(), key=lambda item: -item[1])
    for reason, stalled in waits[:3]:
        share = stalled / cycles / max(1, waves)
        if share * cycles >= SLOT and share >= 0.01:
            told.append(f"waves wait {share:.0%} of the time for: {reason}")
    return tuple(told)
