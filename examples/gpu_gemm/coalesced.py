"""Coalesced: neighbouring threads take neighbouring columns, so a wave reads whole lines of B."""

from __future__ import annotations

from tvm.s_tir import Schedule

ROWS = COLUMNS = 16


def schedule(sch: Schedule) -> None:
    """What was x becomes y. 16 x 16 threads: more workgroups, none of which waits for many."""
    rows, columns, k = sch.get_loops(sch.get_sblock("C"))
    group_row, row = sch.split(rows, [None, ROWS])
    group_column, column = sch.split(columns, [None, COLUMNS])
    sch.reorder(group_row, group_column, row, column, k)
    sch.bind(group_row, "blockIdx.y")
    sch.bind(group_column, "blockIdx.x")
    sch.bind(row, "threadIdx.y")
    sch.bind(column, "threadIdx.x")
