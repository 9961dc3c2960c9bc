"""The pieces of a tile that loads fill, and the register steps that read of each."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt
from tvm.tirx import BufferStore, Expr, Var

from mfmadsl.passes.main_loop.analysis.register_step import RegisterStep
from mfmadsl.passes.main_loop.moves.put import Put
from mfmadsl.passes.tir.expression import NotNumbersError, elements_of, loads_of, numbers

Reads = tuple[int, int]
"""The first and the last register step that reads of a piece."""


def reads_of_pieces(
    puts: Sequence[Put], steps: Sequence[RegisterStep], lane: Var, threads: dict[str, int]
) -> list[Reads]:
    """For each put, of which a wave's fills one block after another, when what it puts is read.

    Places are those without a swizzle, which stays within the blocks. Where they are not known,
    all of a tile is read in all steps. `threads` says how many there are of each thread index.
    """
    whole = 0, len(steps) - 1
    try:
        return [_reads(put, steps, lane, threads) or whole for put in puts]
    except NotNumbersError:
        return [whole] * len(puts)


def _reads(
    put: Put, steps: Sequence[RegisterStep], lane: Var, threads: dict[str, int]
) -> Reads | None:
    block = threads[lane.name] * len(put.run)
    starts = _everywhere(put.run[0].place, threads)
    own = set((starts // block).reshape(-1).tolist())
    found = [
        number
        for number, step in enumerate(steps)
        for read in step.reads
        if own & _blocks(read, put, block, threads)
    ]
    return (found[0], found[-1]) if found else None


def _blocks(read: BufferStore, put: Put, block: int, threads: dict[str, int]) -> set[int]:
    """The blocks of a put's tile that a read touches."""
    (load,) = loads_of(read.value)
    if not load.source.same_as(put.buffer):
        return set()
    index = load.indices[0]
    first = _everywhere(getattr(index, "base", index), threads)
    last = first + len(elements_of(read.indices[0])) - 1
    return {int(x) for ends in (first, last) for x in np.unique(ends // block)}


def _everywhere(place: Expr, threads: dict[str, int]) -> npt.NDArray[np.int64]:
    """A place for all threads of a workgroup."""
    count = prod(threads.values())
    values: dict[str, npt.ArrayLike] = {}
    left = np.arange(count)
    for name, extent in threads.items():
        values[name] = left % extent
        left //= extent
    return np.broadcast_to(numbers(place, values), (count,))
