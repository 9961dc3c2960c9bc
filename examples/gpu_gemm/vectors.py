"""Vectors: four floats a load, from memory and from shared memory."""

from __future__ import annotations

from tvm.s_tir import Schedule

from examples.gpu_gemm.large_tiles import TILE
from examples.gpu_gemm.tile import (
    Dealt,
    Tile,
    copy_by_all_threads,
    deal,
    keep_sums,
    unroll,
)

VECTOR = 4


def schedule(sch: Schedule, tile: Tile = TILE) -> Dealt:
    """A lies turned in shared memory, so that a thread's four rows are one read, as its columns."""
    block, thread, step = deal(sch, tile)
    keep_sums(sch, block, thread, VECTOR)
    a = copy_by_all_threads(sch, block, 0, step, tile, VECTOR, turned=True)
    b = copy_by_all_threads(sch, block, 1, step, tile, VECTOR)
    unroll(sch, block, 2)
    sch.decompose_reduction(block, step)
    return Dealt(block, thread, step, (a, b))
