"""Buffers of a wave become registers where each lane has its own elements, and only there."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import tirx
from tvm.ir import Range
from tvm.tirx import AllocBuffer, AttrStmt, BufferLoad, BufferStore, IterVar, PrimFunc, SeqStmt

from mfmadsl.passes.kernel.registers import registers

LANE = IterVar(Range(0, 64), tirx.Var("tx", "int32"), IterVar.ThreadIndex, "threadIdx.x")
WAVE = IterVar(Range(0, 64), tirx.Var("ty", "int32"), IterVar.ThreadIndex, "threadIdx.y")
OUT = tirx.decl_buffer((64, 4), "float32", "out")
OWN: Any = LANE.var


def kernel(written: Any, read: Any) -> PrimFunc:
    """Element 1 of a lane is written, and one is read."""
    held = tirx.decl_buffer((64, 4), "float32", "held", scope="warp")
    body = SeqStmt([
        AllocBuffer(held),
        BufferStore(held, tirx.const(1, "float32"), [written, 1]),
        BufferStore(OUT, BufferLoad(held, [read, 1]), [OWN, 1]),
    ])  # fmt: skip
    waves = AttrStmt(WAVE, "thread_extent", tirx.const(64, "int32"), body)
    return PrimFunc([OUT], AttrStmt(LANE, "thread_extent", tirx.const(64, "int32"), waves))


@pytest.mark.parametrize(
    ("written", "read", "scope"),
    [
        (OWN, OWN, "local"),
        (OWN, tirx.floordiv(OWN, 8) * 8 + tirx.floormod(OWN, 8), "local"),
        (OWN, OWN ^ 1, "warp"),
        (tirx.const(63) - OWN, OWN, "warp"),
        (OWN, tirx.const(0), "warp"),
        (WAVE.var, WAVE.var, "warp"),
    ],
)
def test_the_scope(written: Any, read: Any, scope: str) -> None:
    body: Any = registers(kernel(written, read)).body
    allocation, store, after = body.body.body.seq
    assert allocation.buffer.scope() == scope
    assert len(store.indices) == len(after.value.indices) == (1 if scope == "local" else 2)
    assert int(store.indices[-1]) == int(after.value.indices[-1]) == 1
