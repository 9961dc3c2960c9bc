"""`share_lds`: a buffer in the LDS lies where another one was, when nobody reads that any more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tvm import ir, tirx
from tvm.tirx import (
    AllocBuffer,
    AttrStmt,
    Buffer,
    BufferLoad,
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

from mfmadsl.model import ARCHITECTURES
from mfmadsl.passes.main_loop.lds.sharing import share_lds

CHIP = ARCHITECTURES["gfx942"]
OUT = tirx.decl_buffer((256,), "float32", "out")
LANE = tirx.Var("threadIdx.x", "int32")


def shared(name: str, length: int, dtype: str) -> Buffer:
    return tirx.decl_buffer((length,), dtype, name, scope="shared")


def put(buffer: Buffer, place: Expr = LANE) -> Stmt:
    value = tirx.const(1, buffer.dtype)
    if isinstance(place, tirx.Ramp):
        value = tirx.Broadcast(value, place.lanes)
    return BufferStore(buffer, value, [place])


def take(buffer: Buffer, place: Expr = LANE) -> Stmt:
    value = tirx.Cast("float32", BufferLoad(buffer, [place]))
    return BufferStore(OUT, value, [LANE])


def after(buffers: Sequence[Buffer], *statements: Stmt) -> list[Stmt]:
    """What becomes of statements behind the allocations of buffers."""
    body = SeqStmt([*(AllocBuffer(each) for each in buffers), *statements])
    thread = IterVar(ir.Range(0, 64), LANE, IterVar.ThreadIndex, "threadIdx.x")
    changed = share_lds(
        PrimFunc([OUT], AttrStmt(thread, "thread_extent", tirx.const(64), body)), CHIP
    )
    assert isinstance(changed.body, AttrStmt)
    assert isinstance(changed.body.body, SeqStmt)
    return list(changed.body.body.seq)


def is_shared(buffers: Sequence[Buffer], *statements: Stmt) -> bool:
    found = after(buffers, *statements)
    return sum(isinstance(each, AllocBuffer) for each in found) < len(buffers)


def test_tiles_of_two_loops_share_a_place() -> None:
    tiles = [shared(name, 256, "float16") for name in ("tile", "following")]
    loops = [
        For(tirx.Var("k", "int32"), tirx.const(0), tirx.const(4), ForKind.SERIAL, SeqStmt(body))
        for body in ([AllocBuffer(each), put(each), take(each)] for each in tiles)
    ]
    allocation, first, _, barrier, second = after([], *loops)
    assert isinstance(allocation, AllocBuffer)
    assert "s.barrier" in str(barrier)
    for loop in (first, second):
        assert [f"{each.name}[" in str(loop) for each in tiles] == [
            each.same_as(allocation.buffer) for each in tiles
        ]


def test_it_lies_in_the_other_behind_a_barrier() -> None:
    tile, sums = shared("tile", 256, "float16"), shared("sums", 128, "float32")
    found = after([tile, sums], put(tile), take(tile), put(sums), take(sums))
    allocation, before, last, wait, barrier, *rest = found
    assert isinstance(allocation, AllocBuffer)
    assert allocation.buffer.same_as(tile)
    assert "s.waitcnt" in str(wait)
    assert "s.barrier" in str(barrier)
    assert all("sums" not in str(each) for each in [before, last, *rest])
    assert "tile[threadIdx_x * 2:threadIdx_x * 2 + 2]" in str(rest[0])
    assert "float16x2" in str(rest[0])


@pytest.mark.parametrize("length", [64, 128, 129, 256])
@pytest.mark.parametrize("dtype", ["float16", "int8", "float32", "float64"])
def test_the_smaller_has_to_have_whole_elements_of_the_larger(length: int, dtype: str) -> None:
    size = np.dtype(dtype).itemsize
    tile, sums = shared("tile", 512 // size, dtype), shared("sums", length, "float32")
    fits = (length <= 128 and 4 % size == 0) or (length >= 128 and size % 4 == 0)
    assert is_shared([tile, sums], take(tile), put(sums)) is fits
    assert is_shared([tile, sums], put(sums), take(tile)) is fits


def test_what_is_used_first_may_lie_in_what_comes_later() -> None:
    sums, tile = shared("sums", 64, "float32"), shared("tile", 256, "float16")
    allocation, before, _, barrier, last = after([sums, tile], put(sums), take(tile))
    assert isinstance(allocation, AllocBuffer)
    assert allocation.buffer.same_as(tile)
    assert "float16x2" in str(before)
    assert "s.barrier" in str(barrier)
    assert "tile[threadIdx_x]" in str(last)


def test_of_three_each_two_that_are_alive_together_are_apart() -> None:
    first, second = shared("first", 64, "float32"), shared("second", 32, "float32")
    tile = shared("tile", 256, "float16")
    both = [put(first), put(second), take(first), take(second), take(tile)]
    found = after([first, second, tile], *both)
    assert sum(isinstance(each, AllocBuffer) for each in found) == 2


def test_what_is_asked_for_again_stays() -> None:
    tile, sums = shared("tile", 256, "float16"), shared("sums", 64, "float32")
    assert not is_shared([tile, sums], take(tile), put(sums), take(tile))
    both = SeqStmt([take(tile), put(sums)])
    again = For(tirx.Var("t", "int32"), 0, 2, ForKind.SERIAL, both)
    assert not is_shared([tile, sums], again)


def test_what_is_not_read_and_written_by_element_stays() -> None:
    tile, sums = shared("tile", 256, "float16"), shared("sums", 64, "float32")
    address = Evaluate(tirx.call_extern("int32", "f", sums.data))
    assert not is_shared([tile, sums], take(tile), put(sums), address)
    apart = tirx.Ramp(LANE, tirx.const(2, "int32"), 2)
    assert not is_shared([tile, sums], take(tile), put(sums, apart))
    together = tirx.Ramp(LANE, tirx.const(1, "int32"), 2)
    assert is_shared([tile, sums], take(tile), put(sums, together))


def test_of_what_is_volatile_accesses_of_a_wave_stay_in_order() -> None:
    """As TVM adds up among lanes: it has no barrier there, but may not move the accesses."""
    tile, sums = shared("tile", 256, "float16"), shared("sums", 64, "float32")
    wave, group = (
        Evaluate(tirx.call_intrin("int32", "tirx.tvm_storage_sync", scope))
        for scope in ("warp", "shared")
    )
    bound = IfThenElse(LANE < 32, SeqStmt([put(sums), wave, take(sums), group]), None)
    found = str(after([tile, sums], bound, take(tile))[1])
    assert "mfmadsl.settle" in found
    assert '"warp"' not in found
    assert '"shared"' in found


def test_registers_and_unused_buffers_stay() -> None:
    tile = tirx.decl_buffer((256,), "float16", "tile", scope="local")
    sums, unused = shared("sums", 64, "float32"), shared("unused", 64, "float32")
    assert not is_shared([tile, sums, unused], take(tile), put(sums))


@pytest.mark.parametrize("of_all", [True, False])
def test_behind_a_bound_of_all_threads_it_is_the_same(of_all: bool) -> None:
    """Of some threads others would not come to the barrier."""
    tile, sums = shared("tile", 256, "float16"), shared("sums", 64, "float32")
    row = tirx.Var("row", "int32")
    inner = SeqStmt([AllocBuffer(tile), AllocBuffer(sums), take(tile), put(sums)])
    bound = IfThenElse((row if of_all else LANE) < 3, inner, None)
    thread = IterVar(ir.Range(0, 64), LANE, IterVar.ThreadIndex, "threadIdx.x")
    whole = AttrStmt(thread, "thread_extent", tirx.const(64), bound)
    assert ("sums" not in str(share_lds(PrimFunc([OUT, row], whole), CHIP).body)) is of_all
