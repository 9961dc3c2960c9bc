"""What cbsz, abid and blgp change: from which block, or which lane, an operand is read.

Source: CDNA3 ISA, section 7.1 (cbsz, abid, blgp), and the modifiers of AMD's calculator.
"""

from __future__ import annotations

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
