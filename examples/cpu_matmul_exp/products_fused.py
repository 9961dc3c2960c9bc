"""Products fused: 32 rows of E are made, and multiplied by C at once."""

from __future__ import annotations

from tvm.s_tir import Schedule

from examples.cpu_matmul_exp.tiled import tile


def schedule(sch: Schedule) -> None:
    """A thread has 32 rows of E, 128 KiB at N = 1024, in its L2, and all of E is never in memory.

    One loop over rows is left, so that threads meet once, not three times.
    """
    first, exp, second = (sch.get_sblock(name) for name in ("P", "E", "F"))
    after = tile(sch, second)
    sch.parallel(after.rows)
    sch.compute_at(exp, after.rows, preserve_unit_loops=True)
    sch.compute_at(first, after.rows, preserve_unit_loops=True)
    before = tile(sch, first)
    sch.reverse_compute_at(exp, before.columns, preserve_unit_loops=True)
    sch.decompose_reduction(first, before.k)
    sch.decompose_reduction(second, after.k)
