"""Thread indices that LLVM takes for others than those before, and knows the range of."""

from __future__ import annotations

import pytest
from tvm import tirx
from tvm.tirx import Bind, BufferStore

from mfmadsl.passes.kernel.thread_index import renewed
from mfmadsl.passes.tir.expression import constant, depends


@pytest.mark.parametrize(("count", "mask"), [(1, 0), (4, 3), (5, 7), (64, 63), (65, 127)])
def test_a_renewed_index_has_the_bits_of_its_range(count: int, mask: int) -> None:
    lane, other = tirx.Var("lane", "int32"), tirx.Var("other", "int32")
    buffer = tirx.decl_buffer((1024,), "int32", "C")
    store = BufferStore(buffer, lane, [lane * 4])
    bind, changed = renewed([store], {lane: count, other: 2})
    assert isinstance(bind, Bind)
    assert isinstance(bind.value, tirx.BitwiseAnd)
    assert constant(bind.value.b) == mask
    assert not depends(changed, lane)
    assert depends(changed, bind.var)


def test_a_renewed_index_keeps_its_type() -> None:
    """Extents of 64 bits, as Relax has them, make thread indices of 64 bits."""
    lane = tirx.Var("lane", "int64")
    buffer = tirx.decl_buffer((1024,), "int64", "C")
    bind, changed = renewed([BufferStore(buffer, lane, [lane * 4])], {lane: 64})
    assert isinstance(bind, Bind)
    assert str(bind.var.ty.dtype) == str(bind.value.ty.dtype) == "int64"
    assert isinstance(changed, BufferStore)
    assert str(changed.indices[0].ty.dtype) == "int64"
