"""Shared memory: a workgroup fetches each element of its tiles of A and B once."""

from __future__ import annotations

from tvm.s_tir import Schedule

from examples.gpu_gemm.tile import Tile, copy_by_all_threads, deal

TILE = Tile(threads=(16, 16), elements=(1, 1), k_step=16)


def schedule(sch: Schedule) -> None:
    """In each step of 16 of K the threads copy 16 x 16 elements of A and of B, one each."""
    block, _, step = deal(sch, TILE)
    for operand in (0, 1):
        copy_by_all_threads(sch, block, operand, step, TILE)
    sch.decompose_reduction(block, step)
