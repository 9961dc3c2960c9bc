"""Blocks whose results nothing reads any more, taken out of a function."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import Buffer, PrimFunc

from mfmadsl.passes.tir.block import statements
from mfmadsl.schedule.product.added_nest import replaced
from mfmadsl.schedule.product.nest import Nest, loads


def without_unread(function: PrimFunc, inside: Sequence[Nest]) -> PrimFunc:
    """The function without blocks whose results nothing reads any more."""
    unread = [nest for nest in inside if not _is_read(function, nest)]
    for nest in unread:
        function = _removed(function, nest, nest.store.buffer)
    # Nothing may read now what those have read.
    left = [nest for nest in inside if not any(nest is each for each in unread)]
    return without_unread(function, left) if unread else function


def _is_read(function: PrimFunc, nest: Nest) -> bool:
    """Whether another statement reads what a block writes, or it is a result."""
    written = nest.store.buffer
    others = (each for each in statements(function) if not each.same_as(nest.statement))
    if any(load.source.same_as(written) for each in others for load in loads(each)):
        return True
    return any(written.same_as(parameter) for parameter in function.params)


def _removed(function: PrimFunc, nest: Nest, written: Buffer) -> PrimFunc:
    shorter = replaced(function, nest, [], [])
    assert isinstance(shorter.body, SBlockRealize)
    root = shorter.body.block
    left = [buffer for buffer in root.alloc_buffers if not buffer.same_as(written)]
    block = SBlock([], root.reads, root.writes, root.name_hint, root.body, None, left)
    return shorter.with_body(SBlockRealize([], True, block))
