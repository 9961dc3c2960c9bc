"""What a micro-kernel of a CPU is: a tile's product in vector registers, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from mfmadsl.error import ArgumentError
from mfmadsl.model.cpu import TILE_ROWS, TILES, llvm_feature, vector_registers
from mfmadsl.model.layout import Layout
from mfmadsl.model.types import ElementType

Slot = tuple[int, int]
"""A vector register and an element of it."""


@dataclass(frozen=True)
class VectorOperand:
    """One operand: a tile of elements, each in an element of a vector register.

    `layout` is that of a wave whose lanes are the registers, and whose registers are the elements
    of one. A `broadcast` register of the machine holds those again and again until it is full.
    """

    name: str
    type: ElementType
    layout: Layout
    broadcast: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the tile."""
        return self.layout.rows, self.layout.columns

    @property
    def registers(self) -> int:
        """How many vector registers hold it."""
        return self.layout.lanes

    @property
    def elements(self) -> int:
        """Those that differ in one register: all of them, or what is broadcast."""
        return self.layout.elements_per_lane

    def slot(self, row: int, column: int) -> Slot:
        """(register, element) that holds an element of the tile."""
        return self.layout.slot(row, column)

    def place(self, register: int, element: int) -> tuple[int, int]:
        """(row, column) of what an element of the machine's register holds."""
        _, row, column = self.layout.element(register, element % self.elements)
        return row, column


class Step(NamedTuple):
    """The registers of one instruction; of AMX, the tile registers."""

    c: int
    a: int
    b: int


@dataclass(frozen=True)
class Microkernel:
    """C[m, n] += A[m, k] x B[k, n] on one thread of a CPU, all sums in registers.

    `call` is the LLVM intrinsic of one step, which takes registers of `arguments` in that order;
    it is "" where a step is arithmetic of vectors, C + A * B. `tiles` says that a register is a
    row of a tile register, sixteen of which a step takes. `features` are those of `model.FEATURES`
    that a CPU must have. `steps` are all instructions, whose products are those of the tile, each
    once.
    """

    name: str
    doc: str
    m: int
    n: int
    k: int
    a: VectorOperand
    b: VectorOperand
    c: VectorOperand
    call: str
    arguments: tuple[str, ...]
    features: tuple[str, ...]
    steps: tuple[Step, ...]
    tiles: bool = False

    @property
    def operands(self) -> dict[str, VectorOperand]:
        """A, B and C by name."""
        return {o.name: o for o in (self.a, self.b, self.c)}

    def operand(self, name: str) -> VectorOperand:
        """Raises ArgumentError, naming those there are, if there is no such operand."""
        if name not in self.operands:
            raise ArgumentError(
                f"{self.name} has no operand `{name}`, but {', '.join(self.operands)}"
            )
        return self.operands[name]

    @property
    def group(self) -> int:
        """The products that one instruction adds to a sum of its register, side by side."""
        return group(self.a.type, self.c.type)

    @property
    def bits(self) -> int:
        """Those of a vector register; of a tile register, of a row."""
        return self.c.elements * self.c.type.bits

    @property
    def llvm_features(self) -> tuple[str, ...]:
        """What LLVM calls its features."""
        return tuple(map(llvm_feature, self.features))

    @property
    def registers_needed(self) -> int:
        """Vector registers, or tile registers, that the steps take at once."""
        return registers_needed(self.a, self.b, self.c, self.call, self.tiles)


def group(a: ElementType, c: ElementType) -> int:
    """The elements of A, and of B, in the width of one of C."""
    return max(1, c.bits // a.bits)


def registers_needed(
    a: VectorOperand, b: VectorOperand, c: VectorOperand, call: str, tiles: bool
) -> int:
    """The sums, those of B along one step of k, and one of A; one for a product without an FMA."""
    if tiles:
        return sum(o.registers // TILE_ROWS for o in (a, b, c))
    few, many = (b, a) if b.broadcast and not a.broadcast else (a, b)
    depth = b.layout.rows // group(a.type, c.type)
    return c.registers + -(-many.registers // depth) + min(1, few.registers) + (not call)


def products(
    step: Step, elements: int, group: int, tiles: bool
) -> Iterator[tuple[Slot, Slot, Slot]]:
    """The slots of C, A and B of each product that one instruction adds to a sum.

    `elements` is the number of sums in a register of C. An element of a register counts as the
    machine does: of what is broadcast, past its first group.
    """
    c, a, b = step
    if not tiles:
        for e in range(elements):
            for g in range(group):
                slot = e * group + g
                yield (c, e), (a, slot), (b, slot)
        return
    for row in range(TILE_ROWS):
        for e in range(elements):
            for q in range(TILE_ROWS):
                for g in range(group):
                    yield (
                        (c * TILE_ROWS + row, e),
                        (a * TILE_ROWS + row, q * group + g),
                        (b * TILE_ROWS + q, e * group + g),
                    )


def available_registers(features: tuple[str, ...], bits: int, tiles: bool) -> int:
    """How many vector registers of so many bits, or tile registers, such a CPU has."""
    return TILES if tiles else vector_registers(features, bits)
