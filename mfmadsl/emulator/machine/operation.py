"""An instruction made ready to run: what it does to waves, and what it touches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal as OneOf

from mfmadsl.emulator.machine.bits import Array
from mfmadsl.emulator.machine.wait import Counter
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.text.operand import Operand, Register

Execute = Callable[[Waves], None]

Unit = OneOf["valu", "matrix", "salu", "smem", "lds", "vmem", "flat"]
"""What executes an instruction."""

_COUNTERS: dict[str, tuple[Counter, ...]] = {
    "vmem": ("vmcnt",),
    "lds": ("lgkmcnt",),
    "smem": ("lgkmcnt",),
    "flat": ("vmcnt", "lgkmcnt"),
}

ALL_BITS = 0xFFFF_FFFF


@dataclass(frozen=True)
class OperandRead:
    """Registers that an instruction reads, and which bits of each word it looks at.

    With `moved`, it only moves the bits, so that they may be some that nobody wrote; of stores,
    whoever watches is told where to. Of a mask of `lanes` the bits of active ones count.
    """

    register: Register
    bits: int = ALL_BITS
    moved: bool = False
    lanes: bool = False


@dataclass(frozen=True)
class Operation:
    """`execute` changes waves; the rest says what of them, for those who watch.

    `flow` is given waves and, as others, their undefined bits; it gives the undefined bits of what
    is written, word after word in the order of `writes`. `whole_wave` marks an instruction that
    EXEC does not mask. `slots` says for how many issue slots, of four cycles each, the vector
    ALU is busy with it; of a matrix instruction they are the passes of the matrix core. One that is
    `wide`, on 64 bits, takes as many slots as the chip needs for that. `takes_scc` and `gives_scc`
    say what it does with the scalar condition code, which with a flow says whether the first of
    `writes` is not 0. A jump `leads_to` addresses, one of each wave.
    One that is `indexable` has a target and then sources, to which M0 may be added.
    """

    execute: Execute
    unit: Unit
    reads: tuple[OperandRead, ...] = ()
    writes: tuple[Register, ...] = ()
    flow: Callable[[Waves, Waves], Array] | None = None
    whole_wave: bool = False
    slots: int = 1
    wide: bool = False
    takes_scc: bool = False
    gives_scc: bool = False
    leads_to: Callable[[Waves], Array] | None = None
    indexable: bool = False

    @property
    def counters(self) -> tuple[Counter, ...]:
        """The counters that count it until it is complete (CDNA3 ISA, section 4.4)."""
        return _COUNTERS.get(self.unit, ())

    @property
    def in_order(self) -> bool:
        """Whether it is complete after those that its counters have counted before."""
        return self.unit not in ("smem", "flat")


def reads_of(*operands: Operand) -> tuple[OperandRead, ...]:
    """What is read of operands, as far as they are registers."""
    return tuple(OperandRead(operand) for operand in operands if isinstance(operand, Register))


def masks_of(*operands: Operand) -> tuple[OperandRead, ...]:
    """What is read of operands that have a bit for each lane, as far as they are registers."""
    return tuple(
        OperandRead(operand, lanes=True) for operand in operands if isinstance(operand, Register)
    )


def moves_of(*operands: Operand) -> tuple[OperandRead, ...]:
    """What is read of operands whose bits are only moved, as far as they are registers."""
    return tuple(
        OperandRead(operand, moved=True) for operand in operands if isinstance(operand, Register)
    )
