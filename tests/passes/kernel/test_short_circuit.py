"""Conditions that read memory are asked after those that say whether it is there."""

from __future__ import annotations

from tvm import tirx
from tvm.tirx import BufferLoad, BufferStore, IfThenElse, PrimFunc, Stmt

from mfmadsl.passes.kernel.short_circuit import short_circuit

PLACE = tirx.Var("i", "int32")
MASK = tirx.decl_buffer((64,), "int32", "mask")
A, OUT = (tirx.decl_buffer((64,), "float32", name) for name in ("A", "out"))
THERE, WANTED = PLACE < 64, BufferLoad(MASK, [PLACE]) > 0


def body_after(body: Stmt) -> str:
    return str(short_circuit(PrimFunc([PLACE], body)).body)


def test_of_a_value() -> None:
    value = tirx.if_then_else(
        tirx.And(THERE, WANTED), BufferLoad(A, [PLACE]), tirx.const(0.0, "float32")
    )
    found = body_after(BufferStore(OUT, value, [PLACE]))
    assert "T.if_then_else(i < 64, T.if_then_else(mask[i] > 0, A[i], " in found


def test_of_a_statement() -> None:
    store = BufferStore(OUT, BufferLoad(A, [PLACE]), [PLACE])
    found = body_after(IfThenElse(tirx.And(THERE, WANTED), store, None))
    assert " and " not in found
    assert found.index("i < 64") < found.index("mask[i] > 0")


def test_conditions_that_read_nothing_stay_together() -> None:
    store = BufferStore(OUT, BufferLoad(A, [PLACE]), [PLACE])
    assert "and" in body_after(IfThenElse(tirx.And(THERE, PLACE > 3), store, None))
