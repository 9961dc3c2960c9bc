"""`emulate`: a kernel's machine code, run on NumPy arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from mfmadsl.argument import described
from mfmadsl.emulator.assembly import parse_assembly
from mfmadsl.emulator.launch import Launch, load_arguments, start_waves
from mfmadsl.emulator.request import check_arguments, check_budget, check_capacity, three
from mfmadsl.emulator.scheduler import Scheduler
from mfmadsl.emulator.watch import Watch
from mfmadsl.emulator.wave import LANES
from mfmadsl.error import ArgumentError, ArgumentTypeError

Dimensions = Sequence[int]

_LANES_AT_ONCE = 1 << 14
"""Lanes of the workgroups that run together: enough to hide NumPy's calls, few enough to cache."""

BUDGET = 10_000_000
"""Instructions that a wave may execute, unless told otherwise."""


@runtime_checkable
class KernelLike(Protocol):
    """A kernel that knows its launch."""

    @property
    def assembly(self) -> str: ...
    @property
    def symbol(self) -> str: ...
    @property
    def grid(self) -> tuple[int, int, int]: ...
    @property
    def block(self) -> tuple[int, int, int]: ...
    @property
    def lds_bytes(self) -> int: ...


class Started(KernelLike, Protocol):
    """A kernel with what it takes."""

    @property
    def args(self) -> Sequence[Any]: ...


@runtime_checkable
class Launches(Protocol):
    """A kernel whose launches depend on its arguments, or are several, such as `build` returns."""

    def launches(self, args: Sequence[Any]) -> Sequence[Started]: ...


Runnable: TypeAlias = KernelLike | Launches | str
"""What can be emulated; a str is assembly text."""


def launches_of(
    kernel: Runnable, args: Sequence[Any]
) -> list[tuple[KernelLike | str, Sequence[Any]]]:
    """What to launch, and with which arguments."""
    check_arguments(args)
    if isinstance(kernel, Launches):
        return [(launch, launch.args) for launch in kernel.launches(args)]
    return [(kernel, args)]


@dataclass(frozen=True)
class Run:
    """What an emulation counted: instructions executed, one for each wave, by mnemonic."""

    instructions: Mapping[str, int]
    waves: int

    @property
    def total(self) -> int:
        return sum(self.instructions.values())


def emulate(
    kernel: Runnable,
    args: Sequence[Any],
    grid: Dimensions | None = None,
    block: Dimensions | None = None,
    *,
    lds_bytes: int | None = None,
    budget: int = BUDGET,
) -> Run:
    """Run a kernel's assembly; arrays in `args` are changed in place, as a GPU would.

    `kernel` is what `build` returned, or assembly text in LLVM's syntax, and then needs `grid`
    and `block`: up to three extents each, in workgroups and threads. `args` are NumPy arrays,
    None for a null pointer and, for arguments passed by value, NumPy scalars, in the order of the
    kernel's parameters. `lds_bytes` is the size of a workgroup's LDS, where the text does not
    state it.

    Raises EmulationError where the kernel accesses something outside of its arguments, uses an
    instruction that is not known, or executes more than `budget` instructions in a wave; it names
    the line of the assembly. See `sanitize` for all else that may be undefined.
    """
    counted: Counter[str] = Counter()
    waves = 0
    for one, values in launches_of(kernel, args):
        run = run_launch(launch_of(one, grid, block, lds_bytes), values, budget)
        counted.update(run.instructions)
        waves += run.waves
    return Run(counted, waves)


def launch_of(
    kernel: KernelLike | str,
    grid: Dimensions | None,
    block: Dimensions | None,
    lds_bytes: int | None,
) -> Launch:
    """The launch that the arguments of `emulate` describe."""
    if not isinstance(kernel, KernelLike | str):
        what = "what `build` returns, or assembly text"
        raise ArgumentTypeError(f"kernel: is {what}, not {described(kernel)}")
    if isinstance(kernel, str):
        program = parse_assembly(kernel)
        block = program.workgroup_size if block is None else block
        if grid is None or block is None:
            raise ArgumentError("assembly text does not say its launch: give grid and block")
    else:
        program = parse_assembly(kernel.assembly, kernel.symbol)
        grid = kernel.grid if grid is None else grid
        block = kernel.block if block is None else block
        lds_bytes = kernel.lds_bytes if lds_bytes is None else lds_bytes
    if lds_bytes is None:
        lds_bytes = program.directive("group_segment_fixed_size")
    launch = Launch(program, three("grid", grid), three("block", block), lds_bytes)
    check_capacity(program, launch.grid, launch.block, lds_bytes)
    return launch


def run_launch(
    launch: Launch,
    args: Sequence[Any],
    budget: int = BUDGET,
    watch: Watch | None = None,
    groups: npt.NDArray[np.int64] | None = None,
) -> Run:
    """Run all workgroups of a launch, or some of them, under the eyes of `watch`."""
    check_budget(budget)
    groups = np.arange(launch.groups) if groups is None else groups
    loaded = load_arguments(launch, args)
    scheduler = Scheduler(launch.program, budget)
    at_once = max(1, _LANES_AT_ONCE // (launch.waves_per_group * LANES))
    with np.errstate(all="ignore"):
        for first in range(0, len(groups), at_once):
            chosen = groups[first : first + at_once]
            scheduler.run(start_waves(launch, loaded, chosen, watch))
    loaded.bring_back()
    return Run(scheduler.counts(), len(groups) * launch.waves_per_group)
