"""`emulate`: a kernel's machine code, run on NumPy arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from mfmadsl.argument import check_integer, described, three_extents
from mfmadsl.emulator.code_object.assembled import read_program
from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.instructions.matrix import is_modelled
from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.machine.advance import Advance
from mfmadsl.emulator.machine.executor import Executor
from mfmadsl.emulator.machine.launch import (
    Launch,
    LoadedProgram,
    check_extents,
    load_arguments,
)
from mfmadsl.emulator.machine.mode import machine_of
from mfmadsl.emulator.machine.occupancy import resident_workgroups
from mfmadsl.emulator.machine.order import order_of
from mfmadsl.emulator.machine.scheduler import Scheduler
from mfmadsl.emulator.machine.watch import Watcher
from mfmadsl.emulator.machine.workgroups import LaunchWorkgroups
from mfmadsl.emulator.native import Stretches, native_code_is_wanted, threads_wanted
from mfmadsl.emulator.request import (
    LOCKSTEP,
    check_arguments,
    check_budget,
    check_capacity,
    check_progress,
    checked_entries,
    checked_order,
)
from mfmadsl.emulator.text.assembly import Program
from mfmadsl.error import ArgumentError, ArgumentTypeError
from mfmadsl.model import Intrinsic

Dimensions = Sequence[int]
Progress = Callable[[int, int], None]
"""Takes how many workgroups of a launch are done, and how many there are."""

MOST_GROUPS = 1 << 24
"""Workgroups of one launch: a day's work."""

BUDGET = 10_000_000
"""Instructions that a wave may execute, unless told otherwise."""


@runtime_checkable
class KernelLike(Protocol):
    """A kernel that knows its launch."""

    @property
    def assembly(self) -> str:
        """The text in LLVM's syntax."""

    @property
    def symbol(self) -> str:
        """The name of the kernel in the text."""

    @property
    def grid(self) -> tuple[int, int, int]:
        """Workgroups of the launch along (x, y, z)."""

    @property
    def block(self) -> tuple[int, int, int]:
        """Threads of a workgroup along (x, y, z)."""

    @property
    def lds_bytes(self) -> int:
        """Bytes of LDS of a workgroup."""


class Started(KernelLike, Protocol):
    """A kernel with what it takes."""

    @property
    def args(self) -> Sequence[Any]:
        """The kernel's arguments in order."""


@runtime_checkable
class Launches(Protocol):
    """A kernel whose launches depend on its arguments, or are several, such as `build` returns."""

    def launches(self, args: Sequence[Any]) -> Sequence[Started]:
        """What to launch for these arguments, one after the other."""


def zeros_of(one: KernelLike | str) -> tuple[int, ...]:
    """The places of the arguments of a launch that are workspaces with zeros in them."""
    return tuple(getattr(one, "zeros", ()))


Runnable: TypeAlias = KernelLike | Launches | str
"""What can be emulated; a str is assembly text."""


@lru_cache(maxsize=8)
def _program(text: str, symbol: str | None) -> Program:
    """The program of a text, which is often launched again."""
    return read_program(text, symbol)


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
    """What an emulation counted: instructions executed, one for each wave, by mnemonic.

    `approximate` are those matrix instructions of which no model of the chip is public: their sums
    are rounded as the emulator pleases, so that the last bits may be others than the chip's.
    `trusted` are those whose meaning is that of a `.mfma` entry, and not the emulator's own.
    """

    instructions: Mapping[str, int]
    waves: int
    approximate: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """How many instructions were executed."""
        return sum(self.instructions.values())


def emulate(
    kernel: Runnable,
    args: Sequence[Any],
    grid: Dimensions | None = None,
    block: Dimensions | None = None,
    *,
    lds_bytes: int | None = None,
    budget: int = BUDGET,
    trusted: Sequence[Intrinsic] = (),
    progress: Progress | None = None,
    order: str = LOCKSTEP,
    seed: int = 0,
) -> Run:
    """Run a kernel's assembly; arrays in `args` are changed in place, as a GPU would.

    `kernel` is what `build` returned, or assembly text in LLVM's syntax, and then needs `grid`
    and `block`: up to three extents each, in workgroups and threads. `args` are NumPy arrays,
    None for a null pointer and, for arguments passed by value, NumPy scalars, in the order of the
    kernel's parameters. `lds_bytes` is the size of a workgroup's LDS, where the text does not
    state it. `progress` is called now and then with the workgroups done and all of them, of each
    launch.

    Waves run together, until they wait in loops for what others do. With `order` "random" a few of
    them run for a while, then others: which, and for how long, `seed` decides. What a kernel
    computes must not depend on it.

    The emulator has its own idea of every instruction. For one that it does not know, or to try out
    another layout, `trusted` names `.mfma` entries whose word is taken for what their instructions
    do; the result lists those that were executed.

    Arrays have the kernel's types and shapes where those are known. They may have any strides, but
    what the kernel writes is writable and shares no memory with another argument.

    Raises ArgumentError for arguments and extents that the kernel cannot have.
    Raises EmulationError where the kernel accesses something outside of its arguments, uses an
    instruction that is not known, executes more than `budget` instructions in a wave, or waits in
    a loop for what no other wave does; it names the line of the assembly. See `sanitize` for all
    else that may be undefined.
    """
    entries = checked_entries(trusted)
    check_progress(progress)
    shuffled = checked_order(order, seed)
    runs = []
    for one, values in launches_of(kernel, args):
        launch = launch_of(one, grid, block, lds_bytes)
        launch = replace(launch, trusted=entries)
        runs.append(run_launch(launch, values, budget, progress=progress, seed=shuffled))
    return all_of(runs)


def all_of(runs: Sequence[Run]) -> Run:
    """What several launches counted together."""
    counted: Counter[str] = Counter()
    for run in runs:
        counted.update(run.instructions)
    approximate, trusted = (
        tuple(sorted({name for run in runs for name in getattr(run, what)}))
        for what in ("approximate", "trusted")
    )
    return Run(counted, sum(run.waves for run in runs), approximate, trusted)


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
        program = _program(kernel, None)
        block = program.workgroup_size if block is None else block
        if grid is None or block is None:
            raise ArgumentError("assembly text does not say its launch: give grid and block")
    else:
        program = _program(kernel.assembly, kernel.symbol)
        grid = kernel.grid if grid is None else grid
        if block is not None and three_extents("block", block) != kernel.block:
            raise ArgumentError(
                f"block: `{kernel.symbol}` is built for {tuple(kernel.block)}, not {tuple(block)}"
            )
        block = kernel.block
        lds_bytes = kernel.lds_bytes if lds_bytes is None else lds_bytes
    if lds_bytes is None:
        lds_bytes = program.directive("group_segment_fixed_size")
    launch = Launch(
        program,
        three_extents("grid", grid),
        three_extents("block", block),
        check_integer("lds_bytes", lds_bytes),
    )
    check_capacity(program)
    check_extents(launch)
    return launch


def run_launch(
    launch: Launch,
    args: Sequence[Any],
    budget: int = BUDGET,
    watcher: Watcher | None = None,
    groups: npt.NDArray[np.int64] | None = None,
    kept: bool = False,
    progress: Progress | None = None,
    seed: int | None = None,
) -> Run:
    """Run all workgroups of a launch, or some of them, under the eyes of `watcher`.

    With `kept` the caller's arrays stay as they are. With a seed, waves run in a random order.
    """
    check_budget(budget)
    loaded = load_arguments(launch, args, kept)
    run = run_loaded(launch, loaded, budget, watcher, groups, progress, seed)
    loaded.bring_back()
    return run


_OPERATIONS, _STRETCHES = "operations", "stretches"
"""What is kept with a program for its next launch."""


def _executor(launch: Launch, budget: int) -> Executor:
    """Who executes the instructions of a launch, with what launches before have made of them."""
    program = launch.program
    machine = machine_of(program, launch.trusted)
    kept = {} if launch.trusted else program.kept
    operations = kept.setdefault(_OPERATIONS, [None] * len(program.instructions))
    compile_one = partial(compile_instruction, machine=machine)
    executor = Executor(program, budget, compile_one, operations)
    threads = threads_wanted()
    if native_code_is_wanted() and not executor.changes_mode:
        stretches = kept.setdefault(_STRETCHES, Stretches(program, machine))
        how: dict[str, Any] = {"check": executor.operation, "threads": threads}
        executor.shortcut = partial(stretches.run, **how)
        executor.watched_shortcut = partial(stretches.run_watched, **how)
        executor.single = partial(stretches.run_one, check=executor.operation)
    return executor


def run_loaded(
    launch: Launch,
    loaded: LoadedProgram,
    budget: int = BUDGET,
    watcher: Watcher | None = None,
    groups: npt.NDArray[np.int64] | None = None,
    progress: Progress | None = None,
    seed: int | None = None,
) -> Run:
    """As `run_launch`, on memory that has the arguments already.

    Of some workgroups others run as well, if those wait for them; nobody watches these.
    """
    if groups is None:
        if launch.groups > MOST_GROUPS:
            raise ArgumentError(
                f"grid: the emulator runs up to {MOST_GROUPS} workgroups, not {launch.groups}: "
                "take a smaller problem"
            )
        groups = np.arange(launch.groups)
    executor = _executor(launch, budget)
    advance = None
    if progress is not None:
        advance = Advance(progress, len(groups), executor.executed)
        executor.tick = advance.tick
    workgroups = LaunchWorkgroups(launch, loaded, groups, watcher, advance)
    resident = cache(partial(resident_workgroups, launch))
    try:
        with np.errstate(all="ignore"):
            Scheduler(executor, workgroups, resident, order_of(seed)).run()
    except EmulationError as error:
        told = error.from_source(launch.program.sources)
        if watcher is None or not watcher.ends(told.fault):
            raise told from None
    counts, arch = executor.counts(), launch.program.arch
    described = {name for intrinsic in launch.trusted for name in intrinsic.mnemonics}
    return Run(
        counts,
        len(groups) * launch.waves_per_group,
        approximate=tuple(x for x in counts if x not in described and not is_modelled(x, arch)),
        trusted=tuple(x for x in counts if x in described),
    )
