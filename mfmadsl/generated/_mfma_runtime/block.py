"""What the blocks of all descriptions are made of: axes, regions and elements of buffers.

Written by `mfmadsl compile` beside the modules that it generates.
"""

# ruff: noqa: N812 (TVMScript is called `T`)

from collections.abc import Callable, Sequence
from typing import Any

from tvm import tirx
from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder

from .operand import Index, Slot


def block_axes(shape: Sequence[int], loops: Sequence[Any], *names: str) -> tuple[Index, ...]:
    """The axes of a block over all loops, called like the last of `names`; vk is summed over.

    It is 0 for a loop of one iteration: TVM drops those from a block, but not their loops, before
    it compares with a description.
    """
    named = zip(names[-len(shape) :], loops, shape, strict=True)
    kept = [(name, loop) for name, loop, extent in named if extent > 1]
    kinds = "".join("R" if name == "vk" else "S" for name, _ in kept)
    bound = T.axis.remap(kinds, [loop for _, loop in kept])
    axes = [bound] if len(kept) == 1 else list(bound)
    for (name, _), axis in zip(kept, axes, strict=True):
        IRBuilder.name(name, axis)
    return tuple(axes.pop(0) if extent > 1 else 0 for extent in shape)


def whole(buffer: Any) -> Any:
    """The region of all of a buffer."""
    return buffer[tuple(slice(0, extent) for extent in buffer.shape)]


def unknown_strides(shape: Sequence[int]) -> list[Any]:
    """Strides that are known where the TensorIntrin is used."""
    return [tirx.Var(f"s{x}", "int32") for x in range(len(shape))]


def of_row(buffer: Any, slot: Callable[..., Slot], i: Index, k: Index) -> Any:
    """Element k of a matrix's row i, which lies in registers."""
    return buffer[slot(i, k)]


def of_column(buffer: Any, slot: Callable[..., Slot], j: Index, k: Index) -> Any:
    """Element k of a matrix's column j, which lies in registers."""
    return buffer[slot(k, j)]
