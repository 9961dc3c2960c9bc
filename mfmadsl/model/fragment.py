"""A tile of a matrix that lanes hold, whoever multiplies it."""

from __future__ import annotations

from dataclasses import dataclass

from mfmadsl.model.intrinsic import Operand


@dataclass(frozen=True)
class Fragment:
    """Where the elements of one tile lie: in the registers of another vendor's warp, or in a memory
    of lanes and columns. No machine code is made of it.

    `operand` is named for what its indices make it: "a" is [i, k], "b" [k, j], "c" [i, j].
    """

    name: str
    doc: str
    operand: Operand

    @property
    def lanes(self) -> int:
        """How many lanes hold it."""
        return self.operand.layout.lanes
