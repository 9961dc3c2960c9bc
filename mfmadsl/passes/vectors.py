"""What a loop cannot be made vectors of: a place that all its turns write."""

from __future__ import annotations

import tvm_ffi
from tvm import tirx
from tvm.tirx import BufferStore, PrimFunc

from mfmadsl.passes.error import LoweringError


def check_vectors(function: PrimFunc) -> PrimFunc:
    """The function, whose loops are vectorized: no store puts different elements in one place.

    TVM makes such stores of a loop in which a buffer is filled that was allocated outside of it.
    """
    found: list[str] = []

    def store(node: BufferStore) -> None:
        several = any(isinstance(index, tirx.Broadcast) for index in node.indices)
        apart = any(isinstance(index, tirx.Ramp) for index in node.indices)
        if several and not apart and not isinstance(node.value, tirx.Broadcast):
            found.append(str(node.buffer.name))

    tvm_ffi.structural_walk(function.body, (BufferStore, store))
    if found:
        raise LoweringError(
            f"a vectorized loop fills one place of `{found[0]}` in all its turns: unroll it instead"
        )
    return function
