"""exp fused: each tile of P is put through exp as soon as its sums are complete."""

from __future__ import annotations

from tvm.s_tir import Schedule

from examples.cpu_matmul_exp.tiled import tile


def schedule(sch: Schedule) -> None:
    """P need not go to memory and come back: a tile of it is 4 KiB, which the L1 still has."""
    for name in ("P", "F"):
        block = sch.get_sblock(name)
        loops = tile(sch, block)
        sch.parallel(loops.rows)
        if name == "P":
            sch.reverse_compute_at(sch.get_sblock("E"), loops.columns)
        sch.decompose_reduction(block, loops.k)
