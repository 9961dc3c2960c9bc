"""`serial_where_filled`: what a vectorized loop fills in each turn is not filled in all at once."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import te, tirx
from tvm.s_tir import Schedule
from tvm.tirx import BufferLoad, BufferStore, For, ForKind, PrimFunc

import mfmadsl
from mfmadsl.passes.kernel.vectors import serial_where_filled

TURN, OTHER = tirx.Var("i", "int32"), tirx.Var("j", "int32")


def copied(through: int, length: int) -> Schedule:
    """A copy of vectors of four, by registers that are filled in loop `through`."""
    a = te.placeholder((length,), name="A", dtype="float32")
    sch = Schedule(te.create_prim_func([a, te.compute((length,), lambda i: a[i] + 1, name="B")]))
    block = sch.get_sblock("B")
    thread, vector = sch.split(sch.get_loops(block)[0], [64, 4])
    sch.bind(thread, "threadIdx.x")
    sch.vectorize(vector)
    sch.compute_at(sch.cache_read(block, 0, "local"), sch.get_loops(block)[through])
    return sch


def kind_after(function: PrimFunc) -> ForKind:
    """What the function's loop has become."""
    loop = serial_where_filled(function).body
    assert isinstance(loop, For)
    return loop.kind


@pytest.mark.parametrize("through", [0, 1])
@pytest.mark.parametrize("length", [256, 255])
def test_a_register_of_each_turn_or_of_all(through: int, length: int) -> None:
    a, b = np.arange(length, dtype=np.float32), np.zeros(length, np.float32)
    mfmadsl.sanitize(mfmadsl.build(copied(through, length)), [a, b])
    assert (b == a + 1).all()


@pytest.mark.parametrize(
    ("place", "kind"),
    [(TURN, ForKind.VECTORIZED), (OTHER, ForKind.UNROLLED), (TURN + OTHER, ForKind.VECTORIZED)],
)
def test_it_is_the_place_that_counts(place: tirx.Var, kind: int) -> None:
    """The place that a store within a loop over `i` is at."""
    a, b = (tirx.decl_buffer((64,), "float32", name) for name in "ab")
    store = BufferStore(b, BufferLoad(a, [TURN]), [place])
    loop = For(TURN, 0, 4, ForKind.VECTORIZED, store)
    assert kind_after(PrimFunc([a, b, OTHER], loop)) == kind


def test_other_loops_stay() -> None:
    a = tirx.decl_buffer((64,), "float32", "a")
    function = PrimFunc([a, OTHER], For(TURN, 0, 4, ForKind.SERIAL, BufferStore(a, 0.0, [OTHER])))
    assert kind_after(function) == ForKind.SERIAL
