"""A look at an entry as text: what it says, what a cell says, and the cells."""

from __future__ import annotations

from mfmadsl.model import INDICES, REGISTER_BITS, Microkernel, Operand, Read
from mfmadsl.report.picture.look import Look, grids_of, operands_of
from mfmadsl.report.picture.text import grids_text
from mfmadsl.report.summary import summary_of


def look_text(look: Look, width: int | None = None, colours: bool = False) -> str:
    """Text that fits a window of `width` characters, coloured for a terminal if asked.

    Raises ArgumentError for what the entry has not.
    """
    return "\n\n".join(
        [summary_of(look.entry), _head(look), grids_text(grids_of(look), width, colours)]
    )


def _head(look: Look) -> str:
    """What a cell says."""
    if isinstance(look.entry, Read):
        return "Each register as lane:element it comes from"
    if look.view == "banks":
        return "Each word of four bytes as the bank that it lies in"
    operands = operands_of(look)
    names = ", ".join(operand.name.upper() for operand in operands)
    if isinstance(look.entry, Microkernel):
        if look.view == "elements":
            return f"{names}, each element as register:element"
        head = f"{names}, a line for each register, with {_indices(look)} of each element"
        broadcast = any(getattr(operand, "broadcast", False) for operand in operands)
        return head + ", which come again and again" * broadcast
    if look.view == "registers":
        return f"{names}, a line for each lane, with {_indices(look)} of what each register holds"
    packed = any(
        isinstance(each, Operand) and (each.sparse or each.type.bits < REGISTER_BITS)
        for each in operands
    )
    return f"{names}, each element as lane:register{'[bits]' * packed}"


def _indices(look: Look) -> str:
    operands = operands_of(look)
    return ",".join(INDICES[operands[0].name]) if len(operands) == 1 else "row,column"
