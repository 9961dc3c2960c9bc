"""Blocks whose results nothing reads any more, taken out of a function."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import Buffer, PrimFunc

from mfmadsl.schedule.product.added_nest import replaced
from mfmadsl.schedule.product.nest import Nest, loads, statements


def without_unread(function: PrimFunc, inside: Sequence[Nest]) -> PrimFunc:
    """The function without blocks whose results nothing reads any more."""
    for nest in inside:
        written = nest.store.buffer
        readers = (each for each in statements(function) if not each.same_as(nest.statement))
        is_read = any(load.source.same_as(written) for each in readers for load in loads(each))
        if not is_read and not any(written.same_as(p) for p in function.params):
            function = _removed(function, nest, written)
    return function


def _removed(function: PrimFunc, nest: Nest, written: Buffer) -> PrimFunc:
    shorter = replaced(function, nest, [], [])
    assert isinstance(shorter.body, SBlockRealize)
    root = shorter.body.block
    left = [buffer for buffer in root.alloc_buffers if not buffer.same_as(written)]
    block = SBlock([], root.reads, root.writes, root.name_hint, root.body, None, left)
    return shorter.with_body(SBlockRealize([], True, block))
