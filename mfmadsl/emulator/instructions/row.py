"""A row of the instruction table: the types of an instruction's sources, and what it computes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mfmadsl.emulator.machine.bits import Array, Compute, dtype_of
from mfmadsl.emulator.machine.mode import Machine


@dataclass(frozen=True)
class Row:
    """`compute` takes the sources as arrays of `kinds` and gives the result, whose type it sets.

    `moves` lists the sources whose bits the instruction only moves, masks or merges, so that bits
    that nobody wrote may pass through it; all other sources must be defined. With `accumulates`,
    the target is the last source; with `reads_mode` the MODE register is. `saturating` is what
    `clamp` makes of an integer instruction. `adds` marks sums, where what is undefined spreads
    upward.
    """

    kinds: tuple[str, ...]
    compute: Compute
    moves: tuple[int, ...] = ()
    accumulates: bool = False
    saturating: Compute | None = None
    reads_mode: bool = False
    adds: bool = False

    @cached_property
    def result(self) -> np.dtype[Any]:
        """The type of the result."""
        zeros = [np.zeros(1, dtype_of("u32" if kind == "u8" else kind)) for kind in self.kinds]
        with np.errstate(all="ignore"):
            return np.asarray(self.compute(*zeros)).dtype

    @property
    def result_words(self) -> int:
        """How many registers the result takes."""
        return max(1, self.result.itemsize // 4)

    @property
    def on_floats(self) -> bool:
        """Whether it takes or gives floats."""
        return any(kind[0] == "f" for kind in self.kinds) or self.result.kind == "f"


def row(kinds: str, compute: Compute, *moves: int, accumulates: bool = False) -> Row:
    """A row whose types are written as one text."""
    return Row(tuple(kinds.split()), compute, moves, accumulates)


def flushed_row(row: Row, machine: Machine) -> Row:
    """A row with denormals flushed as the mode says."""
    if not machine.flushed or not row.on_floats:
        return row
    return replace(row, compute=machine.flushed_compute(row.compute))


def upward(undefined: Array) -> Array:
    """The bits of a sum that may change with undefined ones of an addend: those and all above."""
    return undefined | (~undefined + undefined.dtype.type(1))


def undefined_bits(row: Row, values: list[Array], undefined: list[Array]) -> Array:
    """The bits of a result that depend on undefined ones, of a row that only moves them.

    Whatever moves or merges bits gives a result that differs in just those bits when all of the
    undefined ones are 0 and when all are 1.
    """
    if row.adds:
        spread = [upward(undefined[i]) for i in row.moves]
        return np.asarray(np.bitwise_or.reduce(np.broadcast_arrays(*spread)))
    results = []
    for fill in (0, 1):
        filled = list(values)
        for i in row.moves:
            bits = values[i].view(f"u{values[i].itemsize}")
            bits = bits | undefined[i] if fill else bits & ~undefined[i]
            filled[i] = bits.view(values[i].dtype)
        result = np.asarray(row.compute(*filled))
        results.append(result.view(f"u{result.itemsize}"))
    return results[0] ^ results[1]
