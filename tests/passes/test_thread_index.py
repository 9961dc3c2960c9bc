"""Thread indices that LLVM takes for others than those before, and knows the range of."""

from __future__ import annotations

import pytest
from tvm import tirx
from tvm.tirx import Bind, BufferStore

from mfmadsl.passes.expression import constant, depends
from mfmadsl.passes.thread_index import renewed


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
