"""What the library describes of a chip, for passes, which ask no library."""

from __future__ import annotations

from functools import cache

from mfmadsl.language import library, reads
from mfmadsl.model import Intrinsic, Read
from mfmadsl.passes.main_loop.analysis.matrix import MatrixInstructions


@cache
def described_instructions(arch: str) -> MatrixInstructions:
    """Cycles of the chip's matrix instructions: the most, of entries that call the same.

    A TensorIntrin of a user's own entry says its own (`passes/main_loop/analysis/cycles.py`).
    """
    found: dict[str, int] = {}
    for each in library().values():
        if isinstance(each, Intrinsic) and arch in each.chips:
            found[each.call] = max(found.get(each.call, 0), dict(each.cycles)[arch])
    return MatrixInstructions(found)


@cache
def described_reads(arch: str) -> tuple[Read, ...]:
    """The chip's reads of the LDS in which lanes exchange elements."""
    return tuple(each for each in reads().values() if arch in each.chips)
