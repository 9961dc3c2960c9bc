"""A product of matrices as the builders of schedules for matrix cores take it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tvm.s_tir.schedule import SBlockRV

from mfmadsl.schedule.product.memory import Extent, Memory
from mfmadsl.schedule.product.shuffle import Shuffle


@dataclass(frozen=True)
class BlockRead:
    """What the block of a product reads, [s, rows, columns]: an operand, or what belongs to one.

    `name` is what modules of instructions call it. Its rows are those of C (`side` 0) or its
    columns (1), and each k takes so many of its `columns`, of `size` bytes as the block reads them.
    `memory` says how it lies in the argument that it comes from, and `shuffle` in which order if
    neither rows nor columns lie together there. Of an element that is computed `group` neighbours
    along K share whatever else than that argument it is made of.
    """

    name: str
    side: int
    columns: Fraction
    size: int
    memory: Memory
    shuffle: Shuffle | None = None
    group: int = 1


@dataclass(frozen=True)
class PlainProduct:
    """C[s, i, j], summed over k in a block with the loops s, i, j, k.

    `reads` are in the order of the block's. `result` says how C lies in memory, and `names` what
    the workload calls A, B and C. What is `in_whole_tiles` is padded, and `extents` are those
    without that.
    """

    block: SBlockRV
    reads: tuple[BlockRead, ...]
    extents: tuple[Extent, Extent, Extent, Extent]
    result: Memory
    names: tuple[str, str, str]
    in_whole_tiles: bool = False
