"""The pieces of a tile that loads fill, and the register steps that read of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt
from tvm.tirx import Buffer, BufferStore, Expr, Var

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
        touched = [_touched(r, n, threads) for n, step in enumerate(steps) for r in step.reads]
        sizes = {threads[lane.name] * len(put.run) for put in puts}
        blocks = {size: [each.blocks(size) for each in touched] for size in sizes}
        return [_reads(put, touched, blocks, lane, threads) or whole for put in puts]
    except NotNumbersError:
        return [whole] * len(puts)


@dataclass(frozen=True)
class _Touched:
    """What a read of a register step touches of a tile: from the `first` to the `last` element, in
    each thread."""

    step: int
    tile: Buffer
    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]

    def blocks(self, block: int) -> set[int]:
        """The blocks of so many elements that its ends lie in."""
        return {*(self.first // block).tolist(), *(self.last // block).tolist()}


def _touched(read: BufferStore, step: int, threads: dict[str, int]) -> _Touched:
    (load,) = loads_of(read.value)
    index = load.indices[0]
    first = _everywhere(getattr(index, "base", index), threads)
    return _Touched(step, load.source, first, first + len(elements_of(read.indices[0])) - 1)


def _reads(
    put: Put, touched: Sequence[_Touched], blocks: Mapping[int, Sequence[set[int]]], lane: Var,
    threads: dict[str, int],
) -> Reads | None:  # fmt: skip
    block = threads[lane.name] * len(put.run)
    starts = _everywhere(put.run[0].place, threads)
    own = set((starts // block).reshape(-1).tolist())
    found = [
        read.step
        for read, there in zip(touched, blocks[block], strict=True)
        if read.tile.same_as(put.buffer) and own & there
    ]
    return (found[0], found[-1]) if found else None


def _everywhere(place: Expr, threads: dict[str, int]) -> npt.NDArray[np.int64]:
    """A place for all threads of a workgroup."""
    count = prod(threads.values())
    values: dict[str, npt.ArrayLike] = {}
    left = np.arange(count)
    for name, extent in threads.items():
        values[name] = left % extent
        left //= extent
    return np.broadcast_to(numbers(place, values), (count,))
