"""Tiles that lie in the LDS in the order in which they are shuffled in memory.

So they are copied as they are. A lane reads its elements from where they lie, by the layout of the
instruction's operand: no TensorIntrin says that for each order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from mfmadsl.schedule.matrix_core.tile_loops import WORD, chunks_along_k, per_lane
from mfmadsl.schedule.matrix_core.tiling.resources import CHUNK
from mfmadsl.schedule.product.shuffle import Shuffle


def shuffled_chunks(
    sch: Schedule, shuffle: Shuffle, loops: Sequence[LoopRV], counts: Sequence[int], size: int,
    threads: int, straight: bool,
) -> list[LoopRV]:  # fmt: skip
    """[units, what a thread copies of each], in the order of memory, of loops over rows and
    columns."""
    ordered: dict[int, LoopRV] = {}
    runs, sides = shuffle.runs, len(loops)
    for axis, loop in enumerate(loops):
        own = [n for n, (which, *_) in enumerate(runs) if which == axis]
        own.sort(key=lambda n: -runs[n][1])
        parts = sch.split(loop, [None, *(runs[n][2] for n in own)])
        ordered.update(zip([axis - sides, *own], parts, strict=True))
    in_memory = [ordered[n] for n in sorted(ordered)]
    sch.reorder(*in_memory)
    outer, inner = (sch.fuse(*some) for some in (in_memory[:sides], in_memory[sides:]))
    length = shuffle.rows * shuffle.columns
    if straight and length % WORD == 0 and prod(counts) * size % (CHUNK * threads):
        # Threads without a chunk would need room in the LDS, and those of a part of a wave are
        # not seen to take neighbours.
        unit, inside = sch.split(inner, [None, WORD // size])
        return [sch.fuse(outer, unit), inside]
    shape = prod(counts) // length, length
    return chunks_along_k(sch, outer, inner, shape, size, threads, straight)


def load_shuffled(
    sch: Schedule, registers: SBlockRV, shuffle: Shuffle, tiles: Sequence[LoopRV],
    loops: Sequence[LoopRV], slot: Callable[..., tuple[int, int]],
) -> None:  # fmt: skip
    """Load tiles, [s, rows, columns], from the LDS, where they are shuffled from here on: each lane
    its own elements, by `slot`, in the loops of a tile."""
    sch.transform_layout(registers, ("read", 0), lambda s, i, k: (s, *shuffle.place(i, k)))
    lane, register = per_lane(sch, loops, slot)
    sch.bind(lane, "threadIdx.x")
    for loop in (*tiles, *([] if register is None else [register])):
        sch.unroll(loop)
