"""Stores under a condition go through a descriptor: the buffer's end drops what is not wanted."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from tvm import ir, te, tirx
from tvm.s_tir import Schedule
from tvm.tirx import AttrStmt, BufferStore, Evaluate, Expr, IfThenElse, IterVar, PrimFunc, Stmt

import mfmadsl
from mfmadsl.backend.gpu import lower
from mfmadsl.passes.kernel.edge_stores import without_edge_branches
from mfmadsl.passes.tir.expression import ramp

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


def lanes_of(name: str) -> Expr:
    return tirx.reinterpret("float32", tirx.call_pure_extern("int32", f"mfmadsl.{name}", LANE))


@pytest.mark.parametrize(
    "value",
    [
        FLAT[COLUMN],  # others may write it meanwhile
        SUMS[LANE % 4],  # a number that is not known
        SUMS[0] + tirx.Cast("float32", tirx.truncdiv(tirx.const(1000, "int32"), LANE)),
        lanes_of("other.half.of.2"),  # of a lane that would not be active
        tirx.call_extern("float32", "an_effect"),
        tirx.call_llvm_pure_intrin("float32", "llvm.amdgcn.readfirstlane", SUMS[0]),
    ],
)
def test_what_may_not_be_computed_for_nothing_stays_in_a_branch(value: Expr) -> None:
    store = BufferStore(rows_of(16), value, [ROW * 16 + COLUMN])
    assert isinstance(after(store, ROW < M), IfThenElse)


@pytest.mark.parametrize(
    "condition", [FLAT[0] > 1, SUMS[LANE % 4] > 1, tirx.truncdiv(tirx.const(9, "int32"), M) > 1]
)
def test_what_may_not_be_asked_for_nothing_stays_in_a_branch(condition: Expr) -> None:
    store = BufferStore(rows_of(16), SUMS[0], [ROW * 16 + COLUMN])
    assert isinstance(after(store, ROW < M, condition), IfThenElse)


@pytest.mark.parametrize(
    "value", [SUMS[1] / SUMS[0], lanes_of("bits.bfloat16"), tirx.exp(SUMS[3]), SUMS[0] + 1]
)
def test_numbers_are_computed_anyway(value: Expr) -> None:
    assert asked(after(BufferStore(rows_of(16), value, [ROW * 16 + COLUMN]), ROW < M)) is None


@pytest.mark.parametrize(
    "place",
    [
        ROW * 16 - COLUMN + 15,
        (ROW + 3 - LANE // 16 * 2) * 16 + COLUMN,
        OTHER % 4 * 64 + 64 + COLUMN - LANE // 16 * 16,
    ],
)
def test_a_lanes_place_that_falls_has_a_branch(place: Expr) -> None:
    """LLVM takes constants apart, and what is left counts without a sign."""
    store = BufferStore(FLAT, SUMS[0], [place])
    assert isinstance(after(store, LANE % 4 < 3), IfThenElse)


def test_the_end_of_a_buffer_whose_rows_lie_otherwise_says_nothing() -> None:
    """TVM takes the first stride times the first extent for its length."""
    short = tirx.decl_buffer((10,), "float32", "short")
    found = after(BufferStore(short, SUMS[0], [BLOCK * 64 + LANE]), BLOCK * 64 + LANE < 200)
    assert "2147483644" in str(found)
    assert asked(found) is not None


def test_a_buffer_of_vectors_has_a_branch() -> None:
    four = tirx.decl_buffer((64,), "float32x4", "four")
    held = tirx.decl_buffer((1,), "float32x4", "held", scope="local")
    assert isinstance(after(BufferStore(four, held[0], [LANE]), LANE < 50), IfThenElse)


def test_words_that_are_not_aligned_have_a_branch() -> None:
    odd = tirx.decl_buffer((200,), "float16", "odd")
    held = tirx.decl_buffer((4,), "float16", "held", scope="local")
    store = BufferStore(odd, tirx.BufferLoad(held, [ramp(0, 4)]), [ramp(LANE * 3, 4)])
    assert isinstance(after(store, LANE < 50), IfThenElse)


def test_rows_before_the_first_are_asked() -> None:
    """Of rows that are counted down the end bounds none."""
    found = after(BufferStore(rows_of(16), SUMS[0], [(ROW - 2) * 16 + COLUMN]), ROW - 2 < M)
    assert isinstance(found, IfThenElse) or asked(found) is not None


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
    held = sch.cache_write(sch.get_sblock("B"), 0, "local")
    sch.reverse_compute_at(held, sch.get_loops(sch.get_sblock("B"))[-2])
    sch.unroll(sch.get_loops(sch.get_sblock("B"))[-1])
    if width > 1:
        sch.vectorize(sch.get_loops(held)[-1])
    values = np.arange(32).astype(dtype)
    found = np.full((rows, 20), 99, dtype)
    assert "buffer_store" not in mfmadsl.build(sch).assembly  # without a main loop
    with patch.object(lower, "has_main_loop", lambda _: True):
        kernel = mfmadsl.build(sch)
    assert "buffer_store" in kernel.assembly
    mfmadsl.sanitize(kernel, [values, found])
    assert (found == values[:20]).all()
