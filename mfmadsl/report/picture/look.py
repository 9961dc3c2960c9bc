"""What of an entry is to be seen, and how: the request that every format of `show` answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mfmadsl.error import ArgumentError
from mfmadsl.model import (
    Fragment,
    Intrinsic,
    Microkernel,
    Modifiers,
    Operand,
    Read,
    VectorOperand,
    architecture,
    packed,
)
from mfmadsl.report.layout import PLAIN
from mfmadsl.report.picture.grid import Grid
from mfmadsl.report.picture.operand import Shading, element_grids, register_grids
from mfmadsl.report.picture.read import read_grids
from mfmadsl.report.picture.vector import vector_grids, vector_register_grids

Drawn = Intrinsic | Fragment | Microkernel | Read

VIEWS: Mapping[str, str] = {
    "elements": "the matrix, and where each element lies",
    "registers": "the registers, and what each holds",
    "banks": "a tile in the LDS, and the bank of each word",
}
"""What can be drawn of an entry; of a read there is one view only."""


@dataclass(frozen=True)
class Look:
    """`operands` are names, in the order in which they are drawn; a fragment and a read have none.

    `arch` and `k_pack` are for the view of banks: the chip whose LDS it is, and how many
    instructions a read feeds.
    """

    entry: Drawn
    operands: tuple[str, ...] = ()
    view: str = "elements"
    modifiers: Modifiers = PLAIN
    shading: Shading = "lane"
    arch: str = ""
    k_pack: int = 1


def grids_of(look: Look) -> list[Grid]:
    """All grids of a look. Raises ArgumentError for what the entry has not."""
    entry = look.entry
    if isinstance(entry, Read):
        return read_grids(entry)
    if look.view == "banks":
        return _banks(look)
    grids: list[Grid] = []
    for operand in operands_of(look):
        if isinstance(operand, VectorOperand):
            draw = vector_grids if look.view == "elements" else vector_register_grids
            grids += draw(operand)
        else:
            drawn = element_grids if look.view == "elements" else register_grids
            grids += drawn(operand, look.modifiers, look.shading)
    return grids


def operands_of(look: Look) -> list[Operand | VectorOperand]:
    """The operands of a look. Raises ArgumentError for one that the entry has not."""
    if isinstance(look.entry, Fragment):
        return [look.entry.operand]
    if isinstance(look.entry, Read):
        return []
    return [look.entry.operand(name) for name in look.operands]


def _banks(look: Look) -> list[Grid]:
    # The pass that chooses a swizzle is TVM's neighbour, which takes a second to import.
    from mfmadsl.report.picture.banks import bank_grids

    if not isinstance(look.entry, Intrinsic):
        raise ArgumentError(f"{look.entry.name} is no instruction: nothing of it is in the LDS")
    arch = look.arch or look.entry.chips[-1]
    tile = packed(look.entry, look.k_pack)
    return [grid for name in look.operands for grid in bank_grids(tile, name, architecture(arch))]
