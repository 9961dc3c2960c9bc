"""Stores under a condition go through a descriptor: the buffer's end drops what is not wanted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import ir, te, tirx
from tvm.s_tir import Schedule
from tvm.tirx import AttrStmt, BufferStore, Evaluate, Expr, IfThenElse, IterVar, PrimFunc, Stmt

import mfmadsl
from mfmadsl.passes.kernel.edge_stores import without_edge_branches

LANE, BLOCK, M, OTHER = (tirx.Var(name, "int32") for name in ("lane", "block", "m", "other"))
SUMS = tirx.decl_buffer((4,), "float32", "sums", scope="local")
FLAT = tirx.decl_buffer((100,), "float32", "flat")
ROW = BLOCK * 4 + LANE // 16
COLUMN = LANE % 16
"""Tiles of four rows of 16 columns."""


def rows_of(length: int) -> tirx.Buffer:
    return tirx.decl_buffer((M * length,), "float32", "out")


def thread(variable: tirx.Var, tag: str, extent: Expr | int, body: Stmt) -> Stmt:
    axis = IterVar(ir.Range(0, extent), variable, IterVar.ThreadIndex, tag)
    return AttrStmt(axis, "thread_extent", axis.dom.extent, body)


def after(store: BufferStore, *conditions: Expr) -> Any:
    """What a store behind conditions becomes, in a kernel of 64 lanes."""
    body: Stmt = IfThenElse(tirx.all(*conditions), store, None)
    for variable, tag, extent in ((LANE, "threadIdx.x", 64), (BLOCK, "blockIdx.x", (M + 3) // 4)):
        body = thread(variable, tag, extent, body)
    found: Any = without_edge_branches(PrimFunc([], body)).body
    while isinstance(found, AttrStmt):
        found = found.body
    return found


def asked(found: Any) -> str | None:
    """The condition on which a place is past the end; None if there is no such one."""
    assert isinstance(found, Evaluate)
    assert "buffer.store.i32" in str(found)
    text = str(found)
    return text.partition('"mfmadsl.select", ')[2].rpartition(", ")[0] or None


def test_the_end_of_a_buffer_bounds_its_rows() -> None:
    found = after(BufferStore(rows_of(16), SUMS[0], [ROW * 16 + COLUMN]), ROW < M)
    assert asked(found) is None


def test_a_constant_ahead() -> None:
    place = (ROW + 2) * 16 + COLUMN
    found = after(BufferStore(rows_of(16), SUMS[0], [place]), M > ROW + 2)
    assert asked(found) is None


def test_columns_are_asked() -> None:
    """Those past a row's end would be the next row's."""
    store = BufferStore(rows_of(10), SUMS[0], [ROW * 10 + COLUMN])
    found = asked(after(store, ROW < M, COLUMN < 10))
    assert found is not None
    assert "lane % 16 < 10" in found
    assert "< m" not in found


@pytest.mark.parametrize(
    ("place", "condition"),
    [
        (ROW * 10 + COLUMN, ROW < M),  # columns of the next row
        (ROW * 16 + COLUMN, ROW < M - 1),  # the last row is there
        (ROW * 16 + COLUMN, ROW + 1 < M),
        (ROW * 16 + COLUMN, ROW >= 1),
        (ROW * 16 + COLUMN, LANE < M),
        ((ROW - 1) * 16 + COLUMN, ROW - 1 < M),  # a row before the first
        (ROW * 16 + 15 - COLUMN, COLUMN < M),
    ],
)
def test_what_the_end_does_not_say_is_asked(place: Expr, condition: Expr) -> None:
    """Or the branch stays, where a place may lie before the buffer."""
    length = 10 if "10" in str(place) else 16
    found = after(BufferStore(rows_of(length), SUMS[0], [place]), condition)
    assert isinstance(found, IfThenElse) or asked(found) is not None


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (FLAT[ROW], ROW * 16 + COLUMN),  # there may be no such element
        (SUMS[0], OTHER * 16 + COLUMN),  # no bounds are known
        (SUMS[0], LANE * (1 << 26)),  # farther than a descriptor tells
    ],
)
def test_a_branch_that_is_needed_stays(value: Expr, place: Expr) -> None:
    found = after(BufferStore(rows_of(16), value, [place]), ROW < M)
    assert isinstance(found, IfThenElse)


def test_an_element_that_is_there_is_loaded_anyway() -> None:
    store = BufferStore(rows_of(16), SUMS[0] + FLAT[COLUMN], [ROW * 16 + COLUMN])
    assert asked(after(store, ROW < M)) is None


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("rows", [1, 7, 9])
def test_what_is_stored(dtype: str, width: int, rows: int) -> None:
    """Tiles of 4 x 16 in rows of 20: nothing is written that is not there."""
    m = te.var("m")
    a = te.placeholder((32,), name="A", dtype=dtype)
    sch = Schedule(te.create_prim_func([a, te.compute((m, 20), lambda i, j: a[j], name="B")]))
    i, j = sch.get_loops(sch.get_sblock("B"))
    down, row = sch.split(i, [None, 4])
    across, column, vector = sch.split(j, [None, 16 // width, width])
    sch.reorder(down, across, row, column, vector)
    for loop, tag in (
        (down, "blockIdx.y"),
        (across, "blockIdx.x"),
        (sch.fuse(row, column), "threadIdx.x"),
    ):
        sch.bind(loop, tag)
    if width > 1:
        sch.vectorize(vector)
    values = np.arange(32).astype(dtype)
    found = np.full((rows, 20), 99, dtype)
    kernel = mfmadsl.build(sch)
    assert "buffer_store" in kernel.assembly
    mfmadsl.sanitize(kernel, [values, found])
    assert (found == values[:20]).all()
