"""Large tiles: 8 x 8 elements a thread, in four parts that lie 64 rows and columns apart."""

from __future__ import annotations

from tvm.s_tir import Schedule

from examples.gpu_gemm import thread_tiles
from examples.gpu_gemm.tile import Tile

TILE = Tile(threads=(16, 16), elements=(4, 4), k_step=16, parts=(2, 2))


def schedule(sch: Schedule) -> None:
    """Four multiply-adds for each float that is read, and 64 sums.

    The parts are virtual threads: neighbours read four floats beside each other, as before, where 8
    in one piece would leave every other four of a line of shared memory to later.
    """
    thread_tiles.schedule(sch, TILE)
