"""Thread tiles: a thread computes 4 x 4 elements, of 4 + 4 that it reads."""

from __future__ import annotations

from tvm.s_tir import Schedule

from examples.gpu_gemm.tile import Tile, copy_by_all_threads, deal, keep_sums, unroll

TILE = Tile(threads=(16, 16), elements=(4, 4), k_step=16)


def schedule(sch: Schedule, tile: Tile = TILE) -> None:
    """16 sums stay in registers, and take two multiply-adds for each float from shared memory.

    With K written out as well, the compiler reads several of a row of A at once.
    """
    block, thread, step = deal(sch, tile)
    keep_sums(sch, block, thread)
    for operand in (0, 1):
        copy_by_all_threads(sch, block, operand, step, tile)
    unroll(sch, block, 3)
    sch.decompose_reduction(block, step)
