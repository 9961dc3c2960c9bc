"""Which registers hold the same in all threads."""

from __future__ import annotations

import pytest
from tvm import tirx
from tvm.tirx import Bind, BufferStore, Evaluate, Expr, For, ForKind, IfThenElse, PrimFunc, SeqStmt

from mfmadsl.passes.tir.uniform import uniform_registers

LANE, BLOCK, K, X = (tirx.Var(name, "int32") for name in ("lane", "block", "k", "x"))
ENDS = tirx.decl_buffer((8,), "int32", "ends")
OUT = tirx.decl_buffer((8,), "int32", "out")
TILE = tirx.decl_buffer((8,), "int32", "tile", scope="shared")
ONE, TWO = (tirx.decl_buffer((1,), "int32", name, scope="local") for name in ("one", "two"))


def store(buffer: tirx.Buffer, value: Expr | int) -> BufferStore:
    return BufferStore(buffer, tirx.const(value, "int32") if isinstance(value, int) else value, [0])


def same(*statements: tirx.Stmt, inside: tirx.Stmt | None = None) -> list[str]:
    """The registers that are the same after these statements, ahead of a loop."""
    within = Evaluate(tirx.const(0)) if inside is None else inside
    loop = For(K, 0, 4, ForKind.SERIAL, within)
    function = PrimFunc([], SeqStmt([*statements, loop]))
    return sorted({str(b.name) for b in uniform_registers(function, loop, [LANE])})


@pytest.mark.parametrize(
    "value", [tirx.const(3, "int32"), BLOCK * 2, ENDS[BLOCK], ENDS[BLOCK] // 32 + BLOCK]
)
def test_what_workgroups_have_in_common(value: Expr) -> None:
    assert same(store(ONE, value)) == ["one"]


@pytest.mark.parametrize("value", [LANE, ENDS[LANE], TILE[BLOCK], ENDS[BLOCK] + LANE])
def test_what_differs_among_threads(value: Expr) -> None:
    assert same(store(ONE, value)) == []


def test_one_store_that_differs_is_enough() -> None:
    assert same(store(ONE, 1), store(ONE, LANE)) == []


def test_what_is_made_of_another_register() -> None:
    assert same(store(ONE, BLOCK), store(TWO, ONE[0] + 1)) == ["one", "two"]
    assert same(store(ONE, LANE), store(TWO, ONE[0] + 1)) == []
    assert same(store(TWO, ONE[0] + 1), store(ONE, LANE)) == []


def test_a_condition_and_a_length_decide_too() -> None:
    assert same(IfThenElse(BLOCK < 3, store(ONE, 1), None)) == ["one"]
    assert same(IfThenElse(LANE < 3, store(ONE, 1), None)) == []
    assert same(IfThenElse(BLOCK < 3, store(ONE, 1), store(ONE, LANE))) == []
    assert same(For(X, 0, BLOCK, ForKind.SERIAL, store(ONE, ONE[0] + X))) == ["one"]
    assert same(For(X, 0, LANE, ForKind.SERIAL, store(ONE, ONE[0] + 1))) == []


def test_a_name_for_what_differs() -> None:
    assert same(Bind(X, BLOCK + 1), store(ONE, X)) == ["one"]
    assert same(Bind(X, LANE + 1), store(ONE, X)) == []
    assert same(Bind(X, TWO[0]), store(ONE, X)) == []


def test_memory_that_the_function_writes() -> None:
    assert same(store(ONE, OUT[BLOCK])) == ["one"]
    assert same(store(OUT, BLOCK), store(ONE, OUT[BLOCK])) == []


def test_what_the_loop_writes() -> None:
    assert same(store(ONE, 1), store(TWO, 1), inside=store(ONE, 2)) == ["two"]
