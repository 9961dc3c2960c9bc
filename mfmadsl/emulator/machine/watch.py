"""What those see who watch an emulation: the sanitizer and the profiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from mfmadsl.emulator.error import Fault
from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.wave import AccessWatch, Waves
from mfmadsl.emulator.text.assembly import Instruction


class Watch(AccessWatch):
    """Is called for every instruction of waves that run together, and for their accesses.

    It does nothing itself. One who can looks `ahead`, at several instructions at once: see
    `native`.
    """

    ahead: Any = None

    def before(self, waves: Waves, instruction: Instruction, operation: Operation) -> None:
        """Waves are about to execute an instruction that computes or accesses memory."""

    def after(self, waves: Waves, instruction: Instruction, operation: Operation) -> None:
        """Waves have executed an instruction that computes or accesses memory."""

    def passes(self, waves: Waves, instruction: Instruction) -> None:
        """Waves execute a branch, a wait, a barrier or their end."""

    def barrier(self, groups: Sequence[Waves]) -> None:
        """All waves that still run wait at a barrier and are about to pass it."""


class Watcher(Protocol):
    """Watches a launch, whose workgroups run some at a time."""

    def starts(self, waves: Waves, scalars: int) -> Watch:
        """Who watches waves that are about to start.

        The hardware has set so many scalar registers, and v0.
        """

    def ends(self, fault: Fault) -> bool:
        """Whether the fault that ends a launch is kept, so that it counts as over."""
