"""What the emulated GPU is, and what it has done."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field

from mfmadsl.device.launch import LaunchRecord
from mfmadsl.emulator.error import Fault
from mfmadsl.emulator.request import LOCKSTEP, checked_order
from mfmadsl.emulator.run import BUDGET
from mfmadsl.model import (
    DEFAULT_ARCH,
    Architecture,
    GpuProduct,
    architecture,
    product_called,
    product_of,
)


@dataclass(frozen=True)
class Options:
    """What the emulated GPU is, and what it does beside running kernels.

    `sanitize`: look for what the chip does not define. `log`: tell of each launch, and why calls
    fail. `profile`: model the time of each launch; events of HIP then tell that time. `budget`:
    instructions that a wave may execute. `devices`: how many there are, all alike. `order`:
    of waves, as `emulate` has it, with a `seed` that counts up from launch to launch.
    """

    arch: str = DEFAULT_ARCH
    product: str | None = None
    sanitize: bool = False
    log: bool = False
    profile: bool = False
    budget: int = BUDGET
    devices: int = 1
    order: str = LOCKSTEP
    seed: int = 0


@dataclass
class Gpu:
    """One emulated GPU, with what it has done. Raises ArgumentError for an unknown chip."""

    options: Options
    chip: Architecture = field(init=False)
    product: GpuProduct = field(init=False)
    launches: list[LaunchRecord] = field(default_factory=list)
    calls: list[Fault] = field(default_factory=list)
    """What calls of HIP have done wrong."""
    turn: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.chip = architecture(self.options.arch)
        checked_order(self.options.order, self.options.seed)
        called = product_called(self.options.arch)
        asked = self.options.product or (called.name if called is not None else None)
        self.product = product_of(self.chip.name, asked)

    @property
    def next_seed(self) -> int | None:
        """Of the next launch, where waves run in a random order."""
        seed = checked_order(self.options.order, self.options.seed)
        return None if seed is None else seed + len(self.launches)

    @property
    def models_time(self) -> bool:
        """Whether launches take time in the model of the chip."""
        return self.options.profile

    @property
    def memory_bytes(self) -> int:
        """What the product has, or this machine, if that is less."""
        here = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return min(self.product.memory_bytes, here)

    @property
    def faulty(self) -> bool:
        """Whether the sanitizer has found a fault in any launch or call."""
        return bool(self.calls) or any(launched.faults for launched in self.launches)

    def record(self, launched: LaunchRecord) -> None:
        """Keep what a launch did; its faults are told at once."""
        self.launches.append(launched)
        for fault in launched.faults:
            self.tell(f"{launched.symbol}: error[{fault.kind}]: {fault}")
        self.log(_described(launched))

    def accuse(self, fault: Fault) -> None:
        """Keep what a call of HIP has done wrong, and tell it."""
        self.calls.append(fault)
        self.tell(f"error[{fault.kind}]: {fault}")

    def tell(self, message: str) -> None:
        """A line on standard error, which is the program's as well."""
        with suppress(OSError):
            print(f"mfmadsl device: {message}", file=sys.stderr, flush=True)

    def log(self, message: str) -> None:
        """Tell the user, if asked to."""
        if self.options.log:
            self.tell(message)


def _described(launched: LaunchRecord) -> str:
    grid, block = (" x ".join(map(str, each)) for each in (launched.grid, launched.block))
    modelled = "" if launched.modelled is None else f", {launched.modelled * 1e6:.1f} us modelled"
    return (
        f"{launched.symbol}: grid {grid}, block {block}, {launched.lds_bytes} bytes of LDS, "
        f"{launched.instructions} instructions in {launched.seconds:.3f} s{modelled}"
    )
