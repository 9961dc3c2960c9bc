"""What those see who watch an emulation: the sanitizer and the profiler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mfmadsl.emulator.error import Fault
    from mfmadsl.emulator.machine.memory import Addresses, ByteStore
    from mfmadsl.emulator.machine.operation import Operation
    from mfmadsl.emulator.machine.transfer import Width
    from mfmadsl.emulator.machine.wave import Mask, Waves
    from mfmadsl.emulator.text.assembly import Instruction
    from mfmadsl.emulator.text.operand import Register


class Watch(Protocol):
    """Called for every instruction, and for every access just before it takes place.

    Offsets are those of the lanes of `mask` (of all, if it is None), in their order.
    """

    def starts(self, waves: Waves, scalars: int) -> None:
        """Waves are about to start; the hardware has set so many scalar registers, and v0."""

    def before(self, waves: Waves, instruction: Instruction, operation: Operation) -> None:
        """Waves are about to execute an instruction that computes or accesses memory."""

    def after(self, waves: Waves, instruction: Instruction, operation: Operation) -> None:
        """They have."""

    def passes(self, waves: Waves, instruction: Instruction) -> None:
        """Waves execute a branch, a wait, a barrier or their end."""

    def barrier(self, groups: list[Waves]) -> None:
        """All waves that still run wait at a barrier and are about to pass it."""

    def loads(
        self, waves: Waves, store: ByteStore, offsets: Addresses, target: Register, width: Width,
        mask: Mask | None,
    ) -> None:  # fmt: skip
        """Lanes load into registers."""

    def stores(
        self, waves: Waves, store: ByteStore, offsets: Addresses, source: Register, width: Width,
        mask: Mask | None,
    ) -> None:  # fmt: skip
        """Lanes store registers."""

    def updates(
        self, waves: Waves, store: ByteStore, offsets: Addresses, source: Register, width: Width,
        mask: Mask | None,
    ) -> None:  # fmt: skip
        """Lanes read, combine and write, at once."""

    def fetches(self, waves: Waves, offsets: Addresses, width: Width, mask: Mask | None) -> None:
        """Lanes read global memory on its way to LDS ..."""

    def fills(self, waves: Waves, offsets: Addresses, size: int, mask: Mask | None) -> None:
        """... and LDS is written with it."""

    def clears(self, waves: Waves, target: Register, width: Width, mask: Mask) -> None:
        """Lanes whose load is out of a buffer's bounds get zeros."""

    def scalar_loads(self, waves: Waves, offsets: Addresses, target: Register) -> None:
        """Waves load into scalar registers."""

    def collects(self, waves: Waves, fault: Fault) -> bool:
        """Whether a fault is kept, so that the emulation goes on."""
