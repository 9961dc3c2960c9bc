"""Reordered: the sum's loop goes out, so that the innermost one runs along rows of B and of C."""

from __future__ import annotations

from tvm.s_tir import Schedule

from examples.cpu_matmul_exp import naive


def schedule(sch: Schedule) -> None:
    """A row of P grows by A[i, k] times row k of B: neighbours in memory, one after the other."""
    naive.schedule(sch)
    for name in ("P", "F"):
        block = sch.get_sblock(name)
        _, column, k = sch.get_loops(block)
        sch.reorder(k, column)
        sch.decompose_reduction(block, k)
