"""What is left for the host: to launch kernels, and nothing that is computed."""

from __future__ import annotations

from tvm.tirx import AttrStmt, BufferStore, PrimFunc

from mfmadsl.passes.tir.error import LoweringError
from mfmadsl.passes.tir.walk import walk


def check_host(function: PrimFunc) -> PrimFunc:
    """The function; LoweringError if it is the host's and stores something: nobody runs it."""
    kernels: list[AttrStmt] = []
    stores: list[BufferStore] = []
    walk(function.body, (AttrStmt, kernels.append), (BufferStore, stores.append))
    if stores and not any(node.attr_key == "thread_extent" for node in kernels):
        raise LoweringError(
            f"`{stores[0].buffer.name}` is computed in no kernel: bind the loops of its block to"
            " blockIdx and threadIdx, or inline it"
        )
    return function
