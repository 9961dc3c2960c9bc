"""What cbsz, abid and blgp change: from which block, or which lane, an operand is read.

Source: CDNA3 ISA, section 7.1 (cbsz, abid, blgp), and the modifiers of AMD's calculator.
"""

from __future__ import annotations

from dataclasses import dataclass

from mfmadsl.error import ArgumentError
from mfmadsl.model.intrinsic import REGISTER_BITS, Intrinsic

MODIFIERS = ("cbsz_abid", "blgp", "neg")
"""Broadcast of A's blocks, rearranged lanes of B, and (f64 on CDNA3 and newer) negation."""

NEGATION_CHIPS = ("gfx942", "gfx950")
"""Chips on which blgp negates the operands of f64 instructions."""


def source_block(block: int, cbsz: int, abid: int) -> int:
    """The block of A that is used in place of `block`: one for each group of 2**cbsz blocks."""
    return block >> cbsz << cbsz | abid


def source_lane(lane: int, blgp: int) -> int:
    """The lane from which B is read in place of `lane`."""
    if blgp == 1:
        return lane % 32
    if blgp == 2:
        return 32 + lane % 32
    if blgp == 3:
        return (lane + 16) % 64
    if blgp >= 4:
        return 16 * (blgp - 4) + lane % 16
    return lane


@dataclass(frozen=True)
class Modifiers:
    """cbsz, abid and blgp of an instruction; 0 is the plain one."""

    cbsz: int = 0
    abid: int = 0
    blgp: int = 0


def check_modifiers(intrinsic: Intrinsic, modifiers: Modifiers) -> None:
    """Raises ArgumentError where the instruction takes no such modifier, or not so large a one."""
    if modifiers.blgp and "blgp" not in intrinsic.modifiers:
        raise ArgumentError(f"{intrinsic.name} does not rearrange the lanes of B: it has no blgp")
    if (modifiers.cbsz or modifiers.abid) and "cbsz_abid" not in intrinsic.modifiers:
        raise ArgumentError(f"{intrinsic.name} has neither cbsz nor abid")
    if intrinsic.index:
        sets = REGISTER_BITS // (intrinsic.a.layout.elements_per_lane * intrinsic.index.type.bits)
        if modifiers.abid >= sets:
            raise ArgumentError(f"abid={modifiers.abid}, but the index has {sets} sets")
    elif 1 << modifiers.cbsz > intrinsic.blocks:
        raise ArgumentError(f"cbsz={modifiers.cbsz}, but there are {intrinsic.blocks} blocks")
    elif modifiers.abid >> modifiers.cbsz:
        message = f"abid={modifiers.abid} is no block of the {1 << modifiers.cbsz} that share"
        raise ArgumentError(f"{message} (cbsz={modifiers.cbsz})")
