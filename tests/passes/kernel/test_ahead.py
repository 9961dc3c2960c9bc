"""`load_ahead`: loads of an unrolled loop before what is made of them, none past the edge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from tvm import te, tirx
from tvm.ir import TensorLoad
from tvm.s_tir import Schedule
from tvm.tirx import (
    BufferLoad,
    BufferStore,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    PrimFunc,
    SeqStmt,
    Stmt,
)

import mfmadsl
from mfmadsl.passes.kernel.ahead import load_ahead
from mfmadsl.passes.tir.annotation import AHEAD

EDGE = 1000
N, ROW = tirx.Var("n", "int32"), tirx.Var("row", "int32")
A, B, C = (tirx.decl_buffer((4 * EDGE,), "float32", name) for name in "abc")
ELEMENT, OTHER = tirx.Var("u", "int32"), tirx.Var("v", "int32")
PLACE = ELEMENT * 64 + OTHER


def ahead(body: Stmt, condition: Expr | None = None, otherwise: Stmt | None = None) -> list[str]:
    """What is loaded ahead of a loop of four elements, up to an edge, around `body`."""
    guard = IfThenElse(PLACE < N if condition is None else condition, body, otherwise)
    loop = For(ELEMENT, 0, 4, ForKind.UNROLLED, guard, None, {AHEAD: 1})
    changed = load_ahead(PrimFunc([A, B, C, N, ROW, OTHER], loop)).body
    if isinstance(changed, For):
        assert not changed.annotations
        return []
    assert isinstance(changed, SeqStmt)
    *before, last = changed.seq
    assert isinstance(last, For)
    found: list[TensorLoad] = []
    for each in before:
        tvm_ffi.structural_walk(each, (TensorLoad, found.append))
    assert all("T.min" in str(load) for load in found)
    return [str(load.source.name) for load in found]


def store(value: Any, buffer: Any = B) -> Stmt:
    return BufferStore(buffer, value, [PLACE])


def at(buffer: Any, index: Any = PLACE) -> Expr:
    return BufferLoad(buffer, [index])


def test_a_load_of_what_the_edge_is_about_comes_ahead() -> None:
    assert ahead(store(at(A))) == ["a"]
    assert ahead(store(at(A, ROW * N + PLACE))) == ["a"]
    assert ahead(store(at(A) + at(C))) == ["a", "c"]
    assert ahead(store(at(A) * at(A))) == ["a"]  # once


@pytest.mark.parametrize("index", [PLACE * 2, PLACE // 2, PLACE + ELEMENT, OTHER])
def test_a_load_of_other_elements_stays(index: Expr) -> None:
    """The last element before the edge says nothing of where they end."""
    assert ahead(store(at(A, index))) == []
    assert ahead(store(at(A, index) + at(C))) == ["c"]


def test_a_load_behind_a_condition_of_its_own_stays() -> None:
    chosen = tirx.if_then_else(ROW > 0, at(A, PLACE - 1), tirx.const(0, "float32"))
    assert ahead(store(chosen)) == []
    assert ahead(IfThenElse(ROW > 0, store(at(A)), None)) == []


def test_what_is_stored_to_is_not_read_ahead() -> None:
    assert ahead(store(at(B) + at(A))) == ["a"]


def test_a_load_by_a_variable_from_within_stays() -> None:
    turn = tirx.Var("t", "int32")
    inner = For(turn, 0, 2, ForKind.SERIAL, store(at(A, PLACE + turn)))
    assert ahead(inner) == []


def test_a_loop_without_one_edge_stays() -> None:
    assert ahead(store(at(A)), tirx.And(PLACE < N, ROW < 3)) == []
    assert ahead(store(at(A)), tirx.EQ(PLACE, N)) == []
    assert ahead(store(at(A)), otherwise=store(at(C))) == []
    assert ahead(Evaluate(0)) == []


def test_loops_without_the_annotation_stay() -> None:
    loop = For(ELEMENT, 0, 4, ForKind.UNROLLED, IfThenElse(PLACE < N, store(at(A)), None))
    function = PrimFunc([A, B, N, OTHER], loop)
    assert tvm_ffi.structural_equal(load_ahead(function), function)


@pytest.mark.parametrize("length", [1, 255, 256, 257, EDGE])
@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda a, i: a[i] * 2, lambda x: x * 2),
        (lambda a, i: a[i // 2] - a[i], lambda x: x[np.arange(len(x)) // 2] - x),
        (
            lambda a, i: tirx.if_then_else(i > 0, a[i - 1], tirx.const(-1, "float32")) + a[i],
            lambda x: np.append([-1], x[:-1]) + x,
        ),
    ],
)
def test_numbers_are_right_up_to_the_edge(
    length: int, made: Callable[..., Expr], expected: Callable[[Any], Any]
) -> None:
    a = te.placeholder((length,), name="A", dtype="float32")
    sch = Schedule(te.create_prim_func([a, te.compute((length,), lambda i: made(a, i), name="B")]))
    (loop,) = sch.get_loops(sch.get_sblock("B"))
    step, element, thread = sch.split(loop, [None, 4, 64])
    sch.bind(step, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    sch.reorder(step, thread, element)
    sch.unroll(element)
    sch.annotate(element, AHEAD, 1)
    x, found = np.arange(1, length + 1, dtype=np.float32), np.zeros(length, np.float32)
    assert not mfmadsl.sanitize(mfmadsl.build(sch), [x, found]).faults
    np.testing.assert_array_equal(found, expected(x))
