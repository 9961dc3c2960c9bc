"""A bound that all stores have is asked once, ahead of the main loop."""

from __future__ import annotations

from typing import Any

import pytest
import tvm_ffi
from tvm import ir, tirx
from tvm.tirx import (
    AttrStmt,
    BufferStore,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IterVar,
    PrimFunc,
    SeqStmt,
    Stmt,
)

from mfmadsl.passes.kernel.idle import without_idle_work
from mfmadsl.passes.tir.annotation import PIPELINE

LANE, BLOCK, K = (tirx.Var(name, "int32") for name in ("lane", "block", "k"))
ENDS = tirx.decl_buffer((8,), "int32", "ends")
OUT = tirx.decl_buffer((4096,), "float32", "out")
FIRST = tirx.decl_buffer((1,), "int32", "first", scope="local")
SUMS = tirx.decl_buffer((4,), "float32", "sums", scope="local")

LAST = tirx.decl_buffer((2,), "int32", "last", scope="local")

TABLES = (
    BufferStore(FIRST, ENDS[BLOCK], [0]),
    BufferStore(LAST, ENDS[BLOCK + 1], [0]),
    BufferStore(LAST, ENDS[BLOCK + 2], [1]),
)
LOOP = For(
    K, 0, 8, ForKind.SERIAL, BufferStore(SUMS, tirx.const(1, "float32"), [0]), None, {PIPELINE: 1}
)


def stored(place: Expr, *conditions: Expr) -> Stmt:
    body: Stmt = BufferStore(OUT, SUMS[0], [place])
    for condition in reversed(conditions):
        body = IfThenElse(condition, body, None)
    return body


def asked(*statements: Stmt, before: tuple[Stmt, ...] = TABLES) -> str | None:
    """The condition ahead of the loop, in a kernel of 64 lanes and 8 workgroups."""
    body: Stmt = SeqStmt([*before, LOOP, *statements])
    for variable, tag, extent in ((LANE, "threadIdx.x", 64), (BLOCK, "blockIdx.x", 8)):
        body = thread(variable, tag, extent, body)
    found: Any = without_idle_work(PrimFunc([], body)).body
    while isinstance(found, AttrStmt):
        found = found.body
    ahead = found.seq[len(before)]
    return str(ahead.condition).splitlines()[-1] if isinstance(ahead, IfThenElse) else None


def thread(variable: tirx.Var, tag: str, extent: int, body: Stmt) -> Stmt:
    axis = IterVar(ir.Range(0, extent), variable, IterVar.ThreadIndex, tag)
    return AttrStmt(axis, "thread_extent", tirx.const(extent, "int32"), body)


def row(more: int = 0) -> Expr:
    return FIRST[0] + LANE + more


def test_the_bound_of_the_first_row_is_asked() -> None:
    assert asked(stored(row(), row() < LAST[0])) == "first < last[0]"


def test_the_weakest_bound_counts() -> None:
    some = (stored(row(n), row(n) < LAST[0]) for n in (8, 4))
    assert asked(*some) == "first + 4 < last[0]"


@pytest.mark.parametrize(
    "statement",
    [
        stored(row()),  # in any case
        stored(row(), LANE < 5),  # not the same for all threads
        stored(row(), row() < LAST[LANE % 2]),
        stored(row(), row() >= LAST[0] - 9),  # from above: lanes have no such bound
        Evaluate(tirx.call_extern("int32", "atomic", OUT.data)),
    ],
)
def test_no_bound_that_all_stores_have(statement: Stmt) -> None:
    kept = stored(row(), row() < LAST[0])
    assert asked(statement, kept) is None


def test_two_stores_with_different_bounds() -> None:
    first, second = (stored(row(), row() < LAST[n]) for n in (1, 0))
    assert asked(first, second) is None


def test_one_of_several_bounds_is_that_of_all() -> None:
    bound = asked(
        stored(row(), LANE < 9, row() < LAST[0]),
        stored(row(1), tirx.all(row(1) < LAST[0], ENDS[0] > BLOCK)),
    )
    assert bound == "first < last[0]"


def test_memory_is_not_asked_ahead() -> None:
    """There may be none but where another condition holds."""
    assert asked(stored(row(), BLOCK < 5, row() < ENDS[BLOCK])) is None


def test_registers_that_differ_among_threads_are_not_asked() -> None:
    tables = (TABLES[0], BufferStore(LAST, ENDS[LANE % 8], [0]))
    assert asked(stored(row(), row() < LAST[0]), before=tables) is None


def test_registers_are_asked_after_they_are_written() -> None:
    """What makes the bound stays ahead of it, what does not is skipped with the loop."""
    fill = BufferStore(SUMS, tirx.const(0, "float32"), [0])
    body: Any = SeqStmt([*TABLES, fill, LOOP, stored(row(), row() < LAST[0])])
    kernel = PrimFunc([], thread(LANE, "threadIdx.x", 64, body))
    whole: Any = without_idle_work(kernel).body
    *tables, rest = whole.body.seq
    assert all(map(tvm_ffi.structural_equal, tables, TABLES))
    assert len(rest.then_case.seq) == 3
    assert all(map(tvm_ffi.structural_equal, rest.then_case.seq, body.seq[3:]))
