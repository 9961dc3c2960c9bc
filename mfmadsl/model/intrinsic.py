"""What a matrix instruction is: its operands, its chips and the LLVM intrinsic that emits it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from mfmadsl.error import ArgumentError
from mfmadsl.model.layout import Layout
from mfmadsl.model.types import INDEX, ElementType

REGISTER_BITS = 32

INDICES = {
    "a": ("i", "k"),
    "b": ("k", "j"),
    "c": ("i", "j"),
    "index": ("i", "k"),
    "scale_a": ("i", "k"),
    "scale_b": ("k", "j"),
}
"""What counts the rows and the columns of each operand: C[i, j] += A[i, k] * B[k, j]."""

EXTENT_OF = {"i": "m", "j": "n", "k": "k"}
"""What the extent of each of them is called."""

SPARSE_GROUP, SPARSE_STORED = 4, 2
"""A sparse A stores two of four neighbouring k."""


class Location(NamedTuple):
    """Where one element lies: bits `low` to `high` from 32-bit register `register` of `lane`.

    Bits count past 31 where an element continues in the next register.
    """

    lane: int
    register: int
    low: int
    high: int


@dataclass(frozen=True)
class Operand:
    """One operand of an instruction: tiles of elements and the layout that scatters them.

    The layout of a `sparse` operand counts stored elements, half as many as there are along k.
    """

    name: str
    type: ElementType
    layout: Layout
    sparse: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of one block, as the product sees them."""
        factor = SPARSE_GROUP // SPARSE_STORED if self.sparse else 1
        return self.layout.rows, self.layout.columns * factor

    @property
    def register_count(self) -> int:
        """32-bit registers that one lane gives to the operand."""
        return -(-self.layout.elements_per_lane * self.type.bits // REGISTER_BITS)

    def location(self, row: int, column: int, block: int = 0) -> Location:
        """Where an element lies; a sparse one somewhere in the bits of its group of four."""
        count = 1
        if self.sparse:
            column, count = column // SPARSE_GROUP * SPARSE_STORED, SPARSE_STORED
        lane, element = self.layout.slot(row, column, block)
        register, low = divmod(element * self.type.bits, REGISTER_BITS)
        return Location(lane, register, low, low + count * self.type.bits - 1)


_OVERLOAD = re.compile(r"(\.v\d+[a-z]+\d+)+$")
"""Types at the end of an LLVM intrinsic's name, of those that have several."""


@lru_cache(maxsize=1024)
def spelled(name: str) -> str:
    """An instruction's name without the prefix, the dots and the capitals that people write."""
    text = name.strip().lower()
    if text.startswith("llvm.amdgcn."):
        text = _OVERLOAD.sub("", text.removeprefix("llvm.amdgcn.")).replace(".", "_")
    return text.removeprefix("__builtin_amdgcn_").removeprefix("v_")


@dataclass(frozen=True)
class Intrinsic:
    """C[m, n] += A[m, k] x B[k, n] in each block, done by one wave in one instruction.

    `call` is the LLVM intrinsic, `cycles` says for each chip that has the instruction how long
    the matrix core is busy with it, `aliases` are its other names in assembly. `modifiers` are some
    of "cbsz_abid", "blgp", "neg". With `scales`, (scale_a, scale_b), a product is taken between
    elements that are scaled in groups along k. Without `in_llvm`, LLVM does not have what `call`
    names: there is no machine code of it. An `unscaled` one is a scaled instruction
    without its scales (`unscaled`): the call has formats and zeros in their place.
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
    blocks: int = 1
    modifiers: tuple[str, ...] = ()
    scales: tuple[Operand, ...] = ()
    in_llvm: bool = True
    unscaled: bool = False

    @property
    def chips(self) -> tuple[str, ...]:
        """The chips that have the instruction."""
        return tuple(chip for chip, _ in self.cycles)

    @property
    def operations(self) -> int:
        """Multiplications and additions of all blocks, those with zeros of a sparse A as well."""
        return 2 * self.m * self.n * self.k * self.blocks

    @property
    def wave_size(self) -> int:
        """Lanes of the wave that executes it: those of its chips, over which its operands lie."""
        return self.c.layout.lanes

    @property
    def mnemonics(self) -> tuple[str, ...]:
        """Its names in assembly, CDNA3 spelling first."""
        return f"v_{self.name}", *self.aliases

    def is_called(self, name: str) -> bool:
        """Whether `name` is its name, one of its mnemonics, or its LLVM intrinsic.

        As people write them: in capitals, with or without the `v_`, as a builtin of Clang. A scaled
        one is also called as the instruction without scales, which is this with every scale 1.
        """
        return spelled(name) in self.spellings

    @cached_property
    def spellings(self) -> frozenset[str]:
        """All its names, as `spelled` has them."""
        own = {spelled(each) for each in (self.name, *self.mnemonics, self.call)}
        if self.scales:
            own |= {each.replace("mfma_scale_", "mfma_") for each in own}
            own.add(f"{self.name}_unscaled")
        return frozenset(own)

    @property
    def sparse(self) -> bool:
        """Whether A is 4:2 sparse."""
        return self.a.sparse

    @property
    def index(self) -> Operand | None:
        """The operand that says which elements a sparse A stores: it lies as they do."""
        return Operand("index", INDEX, self.a.layout, sparse=True) if self.sparse else None

    @property
    def operands(self) -> dict[str, Operand]:
        """A, B, C and what else the instruction reads, by name."""
        more = (self.index,) if self.index else ()
        return {o.name: o for o in (self.a, self.b, self.c, *more, *self.scales)}

    def operand(self, name: str) -> Operand:
        """Raises ArgumentError, naming those there are, if the instruction has no such operand."""
        if name not in self.operands:
            raise ArgumentError(
                f"{self.name} has no operand `{name}`, but {', '.join(self.operands)}"
            )
        return self.operands[name]
