"""What of a launch counts on a whole chip, of what a few of its workgroups were seen to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.instructions.matrix import work_of
from mfmadsl.emulator.machine.launch import Launch, Load
from mfmadsl.emulator.profiler.known_chip import chip_of
from mfmadsl.emulator.profiler.launch_time import Work
from mfmadsl.emulator.profiler.record import Recorder
from mfmadsl.emulator.profiler.sharing import FirstSteps, first_steps
from mfmadsl.emulator.profiler.timing import Timing, simulate
from mfmadsl.emulator.profiler.uneven import Uneven, growth, is_uneven, uneven
from mfmadsl.emulator.run import run_loaded
from mfmadsl.emulator.text.assembly import Program
from mfmadsl.model import Architecture, GpuProduct
from mfmadsl.model.traffic import Path, Sharing

_ROUNDS = 4  # that are looked at where workgroups are not alike


def simulate_some(
    chip: Architecture, launch: Launch, recorder: Recorder, loop_end: int | None, groups: int,
    path: Path,
) -> Timing:  # fmt: skip
    """Some of the recorded workgroups on one compute unit, with a way to memory."""
    traces = recorder.traces[: groups * launch.waves_per_group]
    instructions = launch.program.instructions
    per_group = launch.waves_per_group
    return simulate(chip, instructions, recorder.operations, traces, per_group, loop_end, path)


def work_of_launch(
    launch: Launch, load: Load, product: GpuProduct, recorder: Recorder,
    timing: Timing, loop_end: int | None, counts: npt.NDArray[np.int64], budget: int,
) -> Work:  # fmt: skip
    """What of a launch counts on the whole chip.

    `counts` are the matrix instructions of all workgroups, of which those with some have work.
    """
    program = launch.program
    chip = chip_of(program.arch)
    profiled = sorted({trace.group for trace in recorder.traces})
    recorded = len(profiled)  # as many as a compute unit has at once
    working = np.flatnonzero(counts)
    groups = len(working)
    # As many of those that were recorded do what all do.
    alike = float(counts.sum() / counts[profiled].mean())
    rounds = _looked_at(counts, product.compute_units * recorded, profiled)
    seen = first_steps(
        launch, load, rounds, profiled, product.dies, chip.line_bytes,
        loop_end, budget,
    )  # fmt: skip
    looked_at = sum(map(len, rounds))
    read = stored = 0.0
    for place, line_bytes in timing.l2_bytes.items():
        if "_store" in program.instructions[place].name:
            stored += line_bytes
        else:
            read += line_bytes
    flops, switching = 0, Counter[str]()
    for trace in recorder.traces:
        for place, count in Counter(trace.places).items():
            if (done := work_of(program.instructions[place], chip.name)) is not None:
                flops += 2 * done.multiply_adds * count
                switching[done.kind] += 2 * done.stored * count
    return Work(
        groups,
        recorded,
        read / recorded * seen.average * alike / groups,
        stored / recorded,
        seen.footprint,
        _of_requests(seen, _distinct_lines(recorder), read / chip.line_bytes),
        flops / recorded * alike,
        {kind: count / recorded * alike for kind, count in switching.items()},
        1 - (1 - seen.inside) * min(1.0, looked_at / groups),  # of the others nothing was seen
        {unit: cycles / recorded * alike / groups for unit, cycles in timing.busy.items()},
        _lds_bytes(program, recorder) / recorded,
        _idle_cycles(chip, launch, load, working, recorded * product.compute_units, budget),
        _uneven(chip, launch, load, product, counts, profiled, timing.cycles, budget),
    )


def _lds_bytes(program: Program, recorder: Recorder) -> int:
    """What goes into the LDS and out of it, also past the registers."""
    return sum(
        traffic.bytes
        for place, traffic in recorder.traffic.items()
        if traffic.least_cycles or "lds" in program.instructions[place].modifiers
    )


def _looked_at(
    counts: npt.NDArray[np.int64], at_once: int, profiled: Sequence[int]
) -> list[npt.NDArray[np.int64]]:
    """The rounds of a launch that are looked at: the first one, and where some workgroups do less
    than others, several from the first one to the last, as some share more than others, too."""
    working = np.flatnonzero(counts)
    count = -(-len(working) // at_once)
    if (counts == counts[0]).all():
        chosen = [0]
    else:
        chosen = sorted({round(n * (count - 1) / (_ROUNDS - 1)) for n in range(_ROUNDS)})
    found = [working[n * at_once : (n + 1) * at_once] for n in chosen]
    return [np.union1d(found[0], profiled), *found[1:]]


def _uneven(
    chip: Architecture, launch: Launch, load: Load, product: GpuProduct,
    counts: npt.NDArray[np.int64], profiled: list[int], cycles: int, budget: int,
) -> Uneven | None:  # fmt: skip
    """What a launch takes beside the workgroups that were recorded; None where all are alike.

    How much longer it takes where there is more to do, the one with most of it tells, and how much
    faster it is alone on a compute unit, too: that is what the others wait for.
    """
    if not is_uneven(product, counts):
        return None
    mean, longest = counts[profiled].mean(), int(np.argmax(counts))
    recorder = _recorded(chip, launch, load, longest, budget)
    alone, full = (_cycles(chip, launch, recorder, copies) for copies in (1, len(profiled)))
    grows = growth((cycles, full), (mean, counts[longest]))
    relative = np.where(counts > 0, 1 + grows * (counts / mean - 1), 0.0)
    return uneven(product, len(profiled), full / alone, relative)


def _idle_cycles(
    chip: Architecture, launch: Launch, load: Load, working: npt.NDArray[np.int64], at_once: int,
    budget: int,
) -> int:  # fmt: skip
    """The cycles of all rounds of workgroups that have no work, as the first of them takes."""
    others = np.setdiff1d(np.arange(launch.groups), working)
    if not len(others):
        return 0
    recorder = _recorded(chip, launch, load, int(others[0]), budget)
    return -(-len(others) // at_once) * _cycles(chip, launch, recorder, 1)


def _recorded(chip: Architecture, launch: Launch, load: Load, group: int, budget: int) -> Recorder:
    """What one workgroup does."""
    recorder = Recorder(chip)
    run_loaded(launch, load(), budget, recorder, np.array([group]))
    return recorder


def _cycles(chip: Architecture, launch: Launch, recorder: Recorder, copies: int) -> int:
    """The cycles of so many workgroups that do what a recorded one does, on one compute unit."""
    program, per_group = launch.program, launch.waves_per_group
    traces = recorder.traces * copies
    return simulate(chip, program.instructions, recorder.operations, traces, per_group).cycles


def _distinct_lines(recorder: Recorder) -> npt.NDArray[np.int64]:
    """The lines that each workgroup reads, each once, of all workgroups."""
    lines: dict[int, set[int]] = {}
    for trace in recorder.traces:
        lines.setdefault(trace.group, set()).update(*trace.lines.values())
    return np.array([line for own in lines.values() for line in own], np.int64)


def _of_requests(
    seen: FirstSteps, distinct: npt.NDArray[np.int64], requested: float
) -> Sharing:  # fmt: skip
    """What is shared of the distinct lines of workgroups, argument by argument, as shares of the
    lines that they ask of the L2: the vector L1 cache answers for some, and for others it asks
    twice. Those that are known in full may read more of one argument than others do."""
    if not requested:
        return seen.sharing
    firsts = [each.first for each in seen.arguments]
    argument = np.searchsorted(firsts, distinct, side="right") - 1
    counts = np.bincount(argument, minlength=len(firsts))
    die = chip = 0.0
    for count, each in zip(counts.tolist(), seen.arguments, strict=True):
        die += count * each.average * each.sharing.die
        chip += count * each.average * each.sharing.chip
    requested *= seen.average
    return Sharing(min(1.0, die / requested), min(1.0, chip / requested))
