"""Threads in two dimensions: a workgroup of 32 x 32 threads takes a tile of C."""

from __future__ import annotations

from tvm.s_tir import Schedule

ROWS = COLUMNS = 32


def schedule(sch: Schedule) -> None:
    """Waves are full, and share a tile. Neighbours (threadIdx.x) still run along rows of A."""
    rows, columns, k = sch.get_loops(sch.get_sblock("C"))
    group_row, row = sch.split(rows, [None, ROWS])
    group_column, column = sch.split(columns, [None, COLUMNS])
    sch.reorder(group_row, group_column, row, column, k)
    sch.bind(group_row, "blockIdx.x")
    sch.bind(group_column, "blockIdx.y")
    sch.bind(row, "threadIdx.x")
    sch.bind(column, "threadIdx.y")
