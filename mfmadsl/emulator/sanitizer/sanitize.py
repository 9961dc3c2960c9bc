"""`sanitize`: an emulation that tells all that a kernel does and the chip does not define."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mfmadsl.argument import check_flag
from mfmadsl.emulator.error import EmulationError, Fault
from mfmadsl.emulator.instructions.lds import accessed_bytes
from mfmadsl.emulator.machine.launch import Launch
from mfmadsl.emulator.machine.memory import Addresses, ByteStore
from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.transfer import Width
from mfmadsl.emulator.machine.wait import wait_counts
from mfmadsl.emulator.machine.wave import Mask, Waves
from mfmadsl.emulator.request import check_arguments, check_positions
from mfmadsl.emulator.run import (
    BUDGET,
    Dimensions,
    Progress,
    Run,
    Runnable,
    launch_of,
    launches_of,
    run_launch,
)
from mfmadsl.emulator.sanitizer.in_flight import InFlight, Selected
from mfmadsl.emulator.sanitizer.race import Access, Races
from mfmadsl.emulator.sanitizer.undefined import Undefined
from mfmadsl.emulator.text.assembly import Instruction, Program
from mfmadsl.emulator.text.operand import Register
from mfmadsl.model import assumed


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
    progress: Progress | None = None,
) -> Findings:
    """Run a kernel as `emulate` does, and look for what the chip does not define.

    That is: an access outside of an argument; reading a register, LDS or memory that nobody wrote
    (`unwritten` lists the arguments, by position, whose content counts as such, beside that of
    workspaces); two waves that
    meet in LDS with a write and no barrier between; a barrier that not all waves of a workgroup
    reach; using a register before the wait for its load, or LDS before that for its access; a
    misaligned access; more than `budget` instructions in a wave.

    Raises EmulationError at the first fault; with `keep_going` all faults are collected, one for
    each instruction and kind, and the emulation goes on as well as it can.
    """
    check_flag("keep_going", keep_going)
    check_arguments(args)
    check_positions("unwritten", unwritten, len(args))
    findings = []
    started = launches_of(kernel, args)
    empty = [args[place] for place in unwritten]  # until the first launch that takes it
    empty += [v for _, values in started for v in values if _is_workspace(v, args)]
    for one, values in started:
        places = {i for i, value in enumerate(values) if any(value is each for each in empty)}
        empty = [each for each in empty if not any(each is value for value in values)]
        launch = launch_of(one, grid, block, lds_bytes)
        findings.append(_sanitize(launch, values, budget, places, keep_going, progress))
    counted: Counter[str] = Counter()
    for each in findings:
        counted.update(each.run.instructions)
    return Findings(
        Run(counted, sum(each.run.waves for each in findings)),
        tuple(fault for each in findings for fault in each.faults),
        tuple(count for each in findings for count in each.counts),
    )


def _sanitize(
    launch: Launch, args: Sequence[Any], budget: int, unwritten: Collection[int], keep_going: bool,
    progress: Progress | None,
) -> Findings:  # fmt: skip
    sanitizer = Sanitizer(launch.program, keep_going, frozenset(unwritten))
    run = run_launch(launch, args, budget, sanitizer, progress=progress)
    faults = sanitizer.found
    return Findings(run, tuple(faults), tuple(sanitizer.seen[_key(f)] for f in faults))


def _key(fault: Fault) -> tuple[str, int | None]:
    return fault.kind, fault.line


class Sanitizer:
    """Watches an emulation; see `sanitize`."""

    def __init__(
        self, program: Program, keep_going: bool = False, unwritten: frozenset[int] = frozenset()
    ) -> None:
        self.found: list[Fault] = []
        self.seen: dict[tuple[str, int | None], int] = {}
        self._program, self._keep_going, self._unwritten = program, keep_going, unwritten
        self._memory: ByteStore | None = None  # the undefined bytes of global memory
        sizes = map(accessed_bytes, program.instructions)
        self._piece = min([4, *(size for size in sizes if size)])

    def collects(self, waves: Waves, fault: Fault) -> bool:
        if not self._keep_going:
            return False
        instruction = self._program.instructions[waves.pc - 1]
        fault = replace(fault, line=instruction.line, instruction=instruction.text)
        if _key(fault) not in self.seen:
            self.found.append(fault)
        self.seen[_key(fault)] = self.seen.get(_key(fault), 0) + 1
        return True

    def starts(self, waves: Waves, scalars: int) -> None:
        self._total = waves.count
        self._loaded: list[tuple[Register, Any, Mask | None]] = []
        self._in_flight = InFlight(waves.count)
        self._undefined = Undefined(waves, scalars, self._memory)
        for index in range(1 if assumed(self._program.arch).packs_coordinates else 3):
            self._undefined.define("v", index)
        self._undefined.forget(waves.lds)
        self._undefined.forget(waves.scratch)
        self._races = Races(waves, self._in_flight, self._piece)
        if self._unwritten and self._memory is None:  # the first workgroups of the launch
            _, _, *arguments = waves.memory.segments
            for position in self._unwritten:
                first = waves.memory.offset_of(arguments[position])
                self._undefined.forget(waves.memory, first, first + arguments[position].size)
            self._memory = self._undefined.shadow_of(waves.memory)

    def _chosen(self, waves: Waves) -> Selected:
        return slice(None) if waves.count == self._total else waves.index

    def before(self, waves: Waves, instruction: Instruction, operation: Operation) -> None:
        chosen = self._chosen(waves)
        self._in_flight.used(waves, chosen, operation)
        self._undefined.check_reads(waves, chosen, operation)

    def after(self, waves: Waves, instruction: Instruction, operation: Operation) -> None:
        chosen = self._chosen(waves)
        self._in_flight.issue(chosen, operation)
        self._undefined.written(waves, chosen, operation)
        for target, bits, mask in self._loaded:
            self._undefined.loaded(waves, chosen, target, bits, mask)
        self._loaded.clear()

    def passes(self, waves: Waves, instruction: Instruction) -> None:
        if instruction.name == "s_waitcnt":
            counts = wait_counts(instruction.modifiers["argument"])
            self._in_flight.wait(self._chosen(waves), counts)

    def barrier(self, groups: list[Waves]) -> None:
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

    def loads(
        self, waves: Waves, store: ByteStore, offsets: Addresses, target: Register, width: Width,
        mask: Mask | None,
    ) -> None:  # fmt: skip
        if store is waves.lds:
            self._races.access(waves, offsets, width.size, mask, Access(writes=False))
        bits = self._undefined.load(waves, store, offsets, width, mask)
        if bits is not None:
            self._loaded.append((target, bits, mask))

    def stores(
        self, waves: Waves, store: ByteStore, offsets: Addresses, source: Register, width: Width,
        mask: Mask | None,
    ) -> None:  # fmt: skip
        if store is waves.lds:
            self._races.access(waves, offsets, width.size, mask, Access(writes=True))
        chosen = self._chosen(waves)
        self._undefined.store(waves, chosen, store, offsets, source, width, mask)

    def updates(
        self, waves: Waves, store: ByteStore, offsets: Addresses, source: Register, width: Width,
        mask: Mask | None,
    ) -> None:  # fmt: skip
        if store is waves.lds:
            self._races.access(waves, offsets, width.size, mask, Access(writes=True, atomic=True))
        self._undefined.load(waves, store, offsets, width, mask)
        self._undefined.overwrite(store, offsets, width.size)

    def fetches(self, waves: Waves, offsets: Addresses, width: Width, mask: Mask | None) -> None:
        self._undefined.load(waves, waves.memory, offsets, width, mask)

    def fills(self, waves: Waves, offsets: Addresses, size: int, mask: Mask | None) -> None:
        self._races.access(waves, offsets, size, mask, Access(writes=True, through="vmcnt"))
        self._undefined.overwrite(waves.lds, offsets, size)

    def clears(self, waves: Waves, target: Register, width: Width, mask: Mask) -> None:
        """Zeros are as good as any value: the register is written."""

    def scalar_loads(self, waves: Waves, offsets: Addresses, target: Register) -> None:
        """Kernel arguments, most often, which are always written."""
