"""What is done with each launch: run, looked at for faults, and timed in the chip's model."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from mfmadsl.emulator.error import EmulationError, Fault
from mfmadsl.emulator.machine.launch import Launch
from mfmadsl.emulator.run import launch_of, run_loaded
from mfmadsl.emulator.sanitizer.sanitize import Sanitizer
from mfmadsl.emulator.text.assembly import Program
from mfmadsl.model import Architecture, GpuProduct
from mfmadsl.triton.arguments import BoundArguments

if TYPE_CHECKING:
    from mfmadsl.emulator.profiler import Profile


@dataclass(frozen=True)
class TritonKernel:
    """A kernel that Triton has compiled, as the emulator reads it."""

    symbol: str
    assembly: str
    program: Program


@dataclass(frozen=True)
class Launched:
    """A launch: extents, instructions executed by all waves, seconds that it took here, its faults,
    and its profile, where that was asked for."""

    kernel: TritonKernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lds_bytes: int
    instructions: int
    seconds: float
    faults: tuple[Fault, ...] = ()
    profile: Profile | None = None

    @property
    def symbol(self) -> str:
        """The kernel's name."""
        return self.kernel.symbol


@dataclass
class TritonSession:
    """The chip that Triton compiles for, and all launches since `use`.

    With `sanitize` a launch raises EmulationError for what the chip does not define; with `profile`
    each is timed in the model of the product.
    """

    chip: Architecture
    product: GpuProduct
    sanitize: bool
    profile: bool
    budget: int
    launches: list[Launched] = field(default_factory=list, repr=False)
    _clock_runs: bool = field(default=False, init=False, repr=False)

    def run(
        self,
        kernel: TritonKernel,
        grid: tuple[int, int, int],
        threads: int,
        lds_bytes: int,
        bound: BoundArguments,
    ) -> None:
        """Launch a kernel; what it writes is in the caller's arrays then.

        Raises EmulationError for a fault, and ArgumentError for extents that there are not.
        """
        launch = launch_of(kernel_like(kernel, grid, threads, lds_bytes), None, None, None)
        timed = self.profile or self._clock_runs
        profile = self._profiled(launch, bound) if timed else None
        watcher = Sanitizer(kernel.program, keep_going=True) if self.sanitize else None
        before = time.perf_counter()
        loaded = bound.loaded(launch)
        executed = run_loaded(launch, loaded, self.budget, watcher).total
        loaded.bring_back()
        faults = tuple(watcher.found) if watcher is not None else ()
        self.launches.append(
            Launched(
                kernel, launch.grid, launch.block, lds_bytes, executed,
                time.perf_counter() - before, faults, profile,
            )
        )  # fmt: skip
        if faults:
            raise EmulationError.of(faults[0])

    def _profiled(self, launch: Launch, bound: BoundArguments) -> Profile:
        from mfmadsl.emulator.profiler.profile import profile_launch

        load = partial(bound.loaded, launch, kept=True)
        return profile_launch(launch, load, self.budget, product=self.product.name)

    def start_clock(self) -> float:
        """The modelled seconds of all launches so far; from now on each is profiled."""
        self._clock_runs = True
        return sum(x.profile.on_chip.seconds for x in self.launches if x.profile is not None)

    def stop_clock(self) -> None:
        """From now on launches are profiled only if that was asked for."""
        self._clock_runs = False

    @contextmanager
    def timed(self) -> Iterator[list[Launched]]:
        """The launches made meanwhile, each with its profile."""
        asked, first = self.profile, len(self.launches)
        made: list[Launched] = []
        self.profile = True
        try:
            yield made
        finally:
            self.profile = asked
            made += self.launches[first:]


@dataclass(frozen=True)
class _Started:
    """As `emulate` takes a kernel that knows its launch."""

    assembly: str
    symbol: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lds_bytes: int


def kernel_like(
    kernel: TritonKernel, grid: tuple[int, int, int], threads: int, lds_bytes: int
) -> _Started:
    """A launch as the emulator knows it."""
    return _Started(kernel.assembly, kernel.symbol, grid, (threads, 1, 1), lds_bytes)
