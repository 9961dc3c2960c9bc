"""What a matrix instruction is: its operands, its chips and the LLVM intrinsic that emits it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mfmadsl.model.layout import Layout
from mfmadsl.model.types import ElementType

REGISTER_BITS = 32


class Location(NamedTuple):
    """Where one element lies: bits `low` to `high` from 32-bit register `register` of `lane`."""

    lane: int
    register: int
    low: int
    high: int


@dataclass(frozen=True)
class Operand:
    """A, B or C of an instruction: a tile of elements and the layout that scatters it."""

    name: str
    type: ElementType
    layout: Layout

    @property
    def shape(self) -> tuple[int, int]:
        return self.layout.rows, self.layout.columns

    @property
    def register_count(self) -> int:
        """32-bit registers that one lane gives to the operand."""
        return self.layout.registers * self.type.bits // REGISTER_BITS

    def location(self, row: int, column: int) -> Location:
        lane, element = self.layout.slot(row, column)
        register, low = divmod(element * self.type.bits, REGISTER_BITS)
        return Location(lane, register, low, low + self.type.bits - 1)


@dataclass(frozen=True)
class Intrinsic:
    """C[m, n] += A[m, k] x B[k, n], done by one wave in one instruction.

    `call` is the LLVM intrinsic, `cycles` says for each chip that has the instruction how long
    the matrix core is busy with it, `mnemonics` are its names in assembly, CDNA3 spelling first.
    """

    name: str
    doc: str
    m: int
    n: int
    k: int
    a: Operand
    b: Operand
    c: Operand
    call: str
    cycles: tuple[tuple[str, int], ...]
    aliases: tuple[str, ...] = ()

    @property
    def chips(self) -> tuple[str, ...]:
        return tuple(chip for chip, _ in self.cycles)

    @property
    def mnemonics(self) -> tuple[str, ...]:
        return f"v_{self.name}", *self.aliases

    def operand(self, name: str) -> Operand:
        return {"a": self.a, "b": self.b, "c": self.c}[name]
