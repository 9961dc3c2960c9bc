"""`sanitize`: an emulation that tells all that a kernel does and the chip does not define."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mfmadsl.argument import check_flag
from mfmadsl.emulator.error import Fault
from mfmadsl.emulator.instructions.lds import accessed_bytes
from mfmadsl.emulator.instructions.vmem import stored_bytes
from mfmadsl.emulator.machine.coherence import Coherence
from mfmadsl.emulator.machine.launch import Launch
from mfmadsl.emulator.machine.memory import ByteStore
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.request import (
    LOCKSTEP,
    check_arguments,
    check_positions,
    checked_entries,
    checked_order,
)
from mfmadsl.emulator.run import (
    BUDGET,
    Dimensions,
    Progress,
    Run,
    Runnable,
    all_of,
    launch_of,
    launches_of,
    run_launch,
    zeros_of,
)
from mfmadsl.emulator.sanitizer.checks import Checks
from mfmadsl.emulator.sanitizer.facts import Facts
from mfmadsl.emulator.sanitizer.footprint import MemoryWatch
from mfmadsl.emulator.sanitizer.global_race import GlobalRaces
from mfmadsl.emulator.sanitizer.undefined import Undefined, unwritten
from mfmadsl.emulator.text.assembly import Program
from mfmadsl.model import Intrinsic, assumed


@dataclass(frozen=True)
class Findings:
    """What an emulation under the sanitizer gave. `counts` says how often each fault was seen."""

    run: Run
    faults: tuple[Fault, ...]
    counts: tuple[int, ...]


def _is_workspace(value: Any, args: Sequence[Any]) -> bool:
    return isinstance(value, np.ndarray) and not any(value is each for each in args)


def sanitize(
    kernel: Runnable,
    args: Sequence[Any],
    grid: Dimensions | None = None,
    block: Dimensions | None = None,
    *,
    lds_bytes: int | None = None,
    budget: int = BUDGET,
    unwritten: Collection[int] = (),
    keep_going: bool = False,
    trusted: Sequence[Intrinsic] = (),
    progress: Progress | None = None,
    order: str = LOCKSTEP,
    seed: int = 0,
) -> Findings:
    """Run a kernel as `emulate` does, and look for what the chip does not define.

    That is: an access outside of an argument; reading a register, LDS or memory that nobody wrote
    (`unwritten` lists the arguments, by position, whose content counts as such, beside that of
    workspaces); two waves that meet in LDS with a write and no barrier between; a barrier that not
    all waves of a workgroup reach; using a register before the wait for its load, or LDS before
    that for its access; an instruction whose wait states behind another one are not over; a
    misaligned access; more than `budget` instructions in a wave; waiting in a loop for what no
    other wave does. `trusted`, `order` and `seed` are those of `emulate`.

    Raises EmulationError at the first fault; with `keep_going` all faults are collected, one for
    each instruction and kind, and the emulation goes on as well as it can.
    """
    check_flag("keep_going", keep_going)
    entries = checked_entries(trusted)
    check_arguments(args)
    check_positions("unwritten", unwritten, len(args))
    findings = []
    shuffled = checked_order(order, seed)
    started = launches_of(kernel, args)
    empty = [args[place] for place in unwritten]  # until the first launch that takes it
    for one, values in started:
        zeros = zeros_of(one)
        left = [value for place, value in enumerate(values) if place not in zeros]
        empty += [value for value in left if _is_workspace(value, args)]
    for one, values in started:
        places = {i for i, value in enumerate(values) if any(value is each for each in empty)}
        empty = [each for each in empty if not any(each is value for value in values)]
        launch = replace(launch_of(one, grid, block, lds_bytes), trusted=entries)
        findings.append(_sanitize(launch, values, budget, places, keep_going, progress, shuffled))
    return Findings(
        all_of([each.run for each in findings]),
        tuple(fault for each in findings for fault in each.faults),
        tuple(count for each in findings for count in each.counts),
    )


def _sanitize(
    launch: Launch, args: Sequence[Any], budget: int, unwritten: Collection[int], keep_going: bool,
    progress: Progress | None, seed: int | None,
) -> Findings:  # fmt: skip
    sanitizer = Sanitizer(launch.program, keep_going, frozenset(unwritten))
    run = run_launch(launch, args, budget, sanitizer, progress=progress, seed=seed)
    faults = sanitizer.found
    return Findings(run, tuple(faults), tuple(sanitizer.seen[_key(f)] for f in faults))


def _key(fault: Fault) -> tuple[str, int | None]:
    return fault.kind, fault.line


class Sanitizer:
    """Watches the waves of a launch; see `sanitize`."""

    def __init__(
        self, program: Program, keep_going: bool = False,
        unwritten: frozenset[int] = frozenset(), memory: ByteStore | None = None,
        beside: MemoryWatch | None = None,
    ) -> None:  # fmt: skip
        """`unwritten` are arguments; of memory that outlives the launch, `memory` has the undefined
        bytes, and `beside` knows what else happens to it."""
        self.found: list[Fault] = []
        self.seen: dict[tuple[str, int | None], int] = {}
        self._program, self._keep_going, self._unwritten = program, keep_going, unwritten
        self._chip, self._facts = assumed(program.arch), Facts.of(program)
        self._memory, self._beside, self._follows = memory, beside, memory is not None
        sizes = map(accessed_bytes, program.instructions)
        self._piece = min([4, *(size for size in sizes if size)])
        self._in_memory: GlobalRaces | None = None

    def starts(self, waves: Waves, scalars: int) -> Checks:
        """The checks for waves that start together."""
        if self._unwritten and self._memory is None:  # the first workgroups of the launch
            _, _, *arguments = waves.memory.segments[len(self._program.data) :]
            self._memory = unwritten(waves.memory, (arguments[i] for i in self._unwritten))
        vectors = 1 if self._chip.packs_coordinates else 3
        undefined = Undefined(waves, vectors, scalars, self._memory, self._follows)
        in_memory = self._races_in_memory(waves)
        return Checks(
            waves, self._program, undefined, self._facts, self._piece, in_memory, self._collects,
            self._beside,
        )  # fmt: skip

    def ends(self, fault: Fault) -> bool:
        """Keep what ends the launch with the faults that it has come to."""
        if self._keep_going:
            self.found.append(fault)
            self.seen[_key(fault)] = self.seen.get(_key(fault), 0) + 1
        return self._keep_going

    def _races_in_memory(self, waves: Waves) -> GlobalRaces:
        """What all workgroups of the launch share."""
        if self._in_memory is None:
            coherence, instructions = Coherence.of(self._chip), self._program.instructions
            sizes = map(stored_bytes, instructions)
            piece = min([4, *(size for size in sizes if size)])
            looks = coherence.looks(instructions) or bool(self._facts.polls)
            self._in_memory = GlobalRaces(waves, piece, coherence, looks)
        return self._in_memory

    def _collects(self, waves: Waves, fault: Fault) -> bool:
        if not self._keep_going:
            return False
        instruction = self._program.instructions[waves.pc - 1]
        if fault.line is None:
            fault = replace(fault, line=instruction.line, instruction=instruction.text)
        fault = replace(fault, source=self._program.sources.get(fault.line or 0))
        if _key(fault) not in self.seen:
            self.found.append(fault)
        self.seen[_key(fault)] = self.seen.get(_key(fault), 0) + 1
        return True
