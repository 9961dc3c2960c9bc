"""Threads in one dimension: 32 of them, each a row of one column of C."""

from __future__ import annotations

from tvm.s_tir import Schedule

THREADS = 32


def schedule(sch: Schedule) -> None:
    """Half of a wave works. Neighbours read rows of A that lie K floats apart."""
    rows, columns, k = sch.get_loops(sch.get_sblock("C"))
    group, thread = sch.split(rows, [None, THREADS])
    sch.reorder(group, columns, thread, k)
    sch.bind(group, "blockIdx.x")
    sch.bind(columns, "blockIdx.y")
    sch.bind(thread, "threadIdx.x")
