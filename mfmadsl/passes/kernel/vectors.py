"""Vectorized loops that cannot be vectors, since all their iterations write one place, in turn."""

from __future__ import annotations

from tvm.tirx import BufferStore, For, ForKind, PrimFunc

from mfmadsl.passes.tir.expression import depends
from mfmadsl.passes.tir.rewrite import with_body
from mfmadsl.passes.tir.walk import mapped, walk


def serial_where_filled(function: PrimFunc) -> PrimFunc:
    """The function with such loops unrolled: TVM would do all iterations of one statement at once.

    They are made where a buffer that each iteration fills anew is computed inside of a vectorized
    loop.
    """

    def loop(node: For) -> For:
        if node.kind != ForKind.VECTORIZED or not _fills_one_place(node):
            return node
        return For(node.loop_var, node.min, node.extent, ForKind.UNROLLED, node.body, None, {})

    return with_body(function, mapped(function.body, (For, loop)))


def _fills_one_place(loop: For) -> bool:
    """Whether a store in it goes to the same place in all iterations."""
    stores: list[BufferStore] = []
    walk(loop.body, (BufferStore, stores.append))
    return any(
        not any(depends(index, loop.loop_var) for index in store.indices) for store in stores
    )
