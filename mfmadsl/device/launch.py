"""A launch on the emulated GPU: run, watched if asked, and timed by the model if asked."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mfmadsl.device.memory import SharedMemory, pointers
from mfmadsl.device.protocol import Start
from mfmadsl.emulator.error import EmulationError, Fault
from mfmadsl.emulator.machine.launch import Launch, check_extents
from mfmadsl.emulator.machine.memory import GlobalMemory
from mfmadsl.emulator.machine.occupancy import occupancy_of
from mfmadsl.emulator.request import check_capacity
from mfmadsl.emulator.run import run_loaded
from mfmadsl.emulator.sanitizer.sanitize import Sanitizer
from mfmadsl.emulator.text.assembly import Program
from mfmadsl.emulator.text.metadata import KernelArgument, passed
from mfmadsl.error import ArgumentError
from mfmadsl.model import GpuProduct

if TYPE_CHECKING:
    from mfmadsl.emulator.profiler import Profile


@dataclass(frozen=True)
class Function:
    """A kernel of a loaded module; `assembly` is its text, of which faults name the lines."""

    number: int
    assembly: str
    program: Program

    @property
    def passed(self) -> list[KernelArgument]:
        """The kernel's arguments as its metadata describes them."""
        return passed(self.program.arguments)

    @property
    def kernarg_bytes(self) -> int:
        """The size of the kernel argument segment, as the emulator lays it out."""
        end = max((a.offset + a.size for a in self.program.arguments), default=16)
        return -(-end // 16) * 16


@dataclass(frozen=True)
class LaunchRecord:
    """What a launch did: instructions executed, seconds that it took here, and its faults."""

    symbol: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lds_bytes: int
    stream: int
    instructions: int
    seconds: float
    faults: tuple[Fault, ...]
    failed: bool
    assembly: str = ""
    profile: Profile | None = None
    """In the model of the chip, where that was asked."""

    @property
    def modelled(self) -> float | None:
        """Seconds that it takes in the model of the chip, where that was asked."""
        return None if self.profile is None else self.profile.on_chip.seconds


def run_launch(
    function: Function,
    start: Start,
    memory: SharedMemory,
    budget: int,
    watched: Callable[[GlobalMemory], Sanitizer] | None = None,
    seed: int | None = None,
) -> LaunchRecord:
    """Run a kernel on the memory of a program.

    Under the sanitizer, which `watched` gives for the memory, it goes on after a fault, as well as
    it can; without, the first one ends it.
    With a seed, waves run in a random order. Raises ArgumentError for extents that the kernel or
    the chip does not take.
    """
    launch = launch_of(function, start)
    before = time.perf_counter()
    named = pointers(
        [(a.name, a.offset) for a in function.passed if a.kind != "by_value"], start.arguments
    )
    loaded = memory.loaded(launch, start.arguments, named)
    sanitizer = None if watched is None else watched(loaded.memory)
    faults: list[Fault] = []
    executed, failed = 0, False
    try:
        executed = run_loaded(launch, loaded, budget, sanitizer, seed=seed).total
    except EmulationError as error:
        faults.append(error.fault)
        failed = True
    except ArgumentError:
        raise
    except Exception as error:  # ours, and no reason to end the program's device
        faults.append(_own(error))
        failed = True
    if sanitizer is not None:
        faults = [*sanitizer.found, *faults]
    return LaunchRecord(
        function.program.name, start.grid, start.block, launch.lds_bytes, start.stream, executed,
        time.perf_counter() - before, tuple(faults), failed, function.assembly,
    )  # fmt: skip


def _own(error: Exception) -> Fault:
    """An error of the emulator itself, and where in it."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    told = f"{type(error).__name__}: {error}".rstrip(": ")
    return Fault("internal-error", f"the emulator itself has failed{where}: {told}")


def launch_of(function: Function, start: Start) -> Launch:
    """The launch as the emulator knows it. Raises ArgumentError where there is none such."""
    own = function.program.directive("group_segment_fixed_size")
    launch = Launch(function.program, start.grid, start.block, own + start.lds_bytes)
    check_capacity(function.program)
    check_extents(launch)
    return launch


def resident_groups(function: Function, threads: int, lds_bytes: int) -> int:
    """How many workgroups of so many threads, with bytes of LDS beside the kernel's own, a compute
    unit holds; 0 where not one fits."""
    program = function.program
    own = program.directive("group_segment_fixed_size")
    launch = Launch(program, (1, 1, 1), (threads, 1, 1), own + lds_bytes)
    try:
        return occupancy_of(launch).groups
    except ArgumentError:
        return 0


def modelled(
    function: Function, start: Start, memory: SharedMemory, product: GpuProduct, budget: int
) -> Profile:
    """A launch in the profiler's model; memory stays as it is.

    Raises EmulationError and ArgumentError as `profile` does.
    """
    from mfmadsl.emulator.profiler.profile import profile_launch

    launch = launch_of(function, start)
    load = partial(memory.loaded, launch, start.arguments, {}, kept=True)
    return profile_launch(launch, load, budget, product=product.name)
