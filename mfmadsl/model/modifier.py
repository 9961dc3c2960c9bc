"""What cbsz, abid and blgp change: from which block, or which lane, an operand is read.

Source: CDNA3 ISA, section 7.1 (cbsz, abid, blgp), and the modifiers of AMD's calculator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mfmadsl.error import ArgumentError
from mfmadsl.model.chips import ARCHITECTURES
from mfmadsl.model.intrinsic import REGISTER_BITS, Intrinsic

MODIFIERS = ("cbsz_abid", "blgp", "neg")
"""Broadcast of A's blocks, rearranged lanes of B, and (f64 on CDNA3 and newer) negation."""


def negation_chips() -> tuple[str, ...]:
    """The chips on which blgp negates the operands of f64 instructions."""
    return tuple(a.name for a in ARCHITECTURES.values() if a.negates)


def source_block(block: int, cbsz: int, abid: int) -> int:
    """The block of A that is used in place of `block`: one for each group of 2**cbsz blocks."""
    return block >> cbsz << cbsz | abid


class LaneSource(NamedTuple):
    """The lane from which B is read in place of another: (lane + turn) % extent + first.

    Without an `extent` it is the lane itself. Its text is that expression in `lane`.
    """

    turn: int = 0
    extent: int = 0
    first: int = 0

    def of(self, lane: int) -> int:
        """The lane from which B is read in place of `lane`."""
        return (lane + self.turn) % self.extent + self.first if self.extent else lane

    def __str__(self) -> str:
        if not self.extent:
            return "lane"
        text = f"(lane + {self.turn})" if self.turn else "lane"
        return f"{text} % {self.extent}" + (f" + {self.first}" if self.first else "")


def lane_sources(lanes: int) -> tuple[LaneSource, ...]:
    """For each blgp what it does to the lanes of B in a wave of so many (section 7.1.3).

    1 and 2 repeat a half of them, 3 turns them by a quarter, 4 to 7 repeat a quarter.
    """
    half, quarter = lanes // 2, lanes // 4
    halves = (LaneSource(extent=half, first=first) for first in (0, half))
    quarters = (LaneSource(extent=quarter, first=number * quarter) for number in range(4))
    return LaneSource(), *halves, LaneSource(quarter, lanes), *quarters


def source_lane(lane: int, blgp: int, lanes: int) -> int:
    """The lane from which B is read in place of `lane`, in a wave of so many."""
    return lane_sources(lanes)[blgp].of(lane)


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
