"""A tile of a matrix: its shape in memory, and which lane's register holds which element.

Written by `mfmadsl compile` beside the modules that it generates.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

Index = Any  # an integer, or one of TVM's expressions
Slot = tuple[Index, Index]  # the lane and the element of its registers
Place = tuple[Index, ...]  # tiles, and the slot in one


class Operand(NamedTuple):
    """A tile of a matrix in memory, and the registers of a wave that hold it."""

    dtype: str
    shape: tuple[int, ...]
    """Blocks, if there are several; rows and columns."""
    registers: tuple[int, int]
    """Lanes, and elements of each."""
    slot: Callable[..., Slot]
    """Where a wave holds the element of a block, a row and a column."""

    def of_shared_blocks(self, cbsz: int, abid: int) -> "Operand":
        """A, of which each group of 2**cbsz blocks uses the block `abid`."""

        def slot(block: Index, i: Index, k: Index) -> Slot:
            return self.slot(block // 2**cbsz * 2**cbsz + abid, i, k)

        return self._replace(slot=slot)

    def of_lanes(self, source: Callable[[Index], Index]) -> "Operand":
        """The operand with what lane `source(lane)` holds in place of what `lane` does."""

        def slot(*place: Index) -> Slot:
            lane, register = self.slot(*place)
            return source(lane), register

        return self._replace(slot=slot)
