"""Indices that each iteration reads of memory, an iteration ahead: the pages of a cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import BufferStore, Expr

from mfmadsl.passes.main_loop.analysis.loop import Loop
from mfmadsl.passes.main_loop.moves.element import MemorySource
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.error import NotUnderstoodError
from mfmadsl.passes.tir.expression import (
    WORD,
    bytes_of,
    depends,
    i32,
    loads_of,
    narrowed,
    substitute,
    variables_of,
)
from mfmadsl.passes.tir.walk import mapped


@dataclass(frozen=True)
class MovingIndex:
    """An index that each iteration reads of memory, and the register that holds it until its fetch:
    it is read when the iteration before is fetched, so that no load waits for another.

    Where it leads out of its array it is 0; of such an element nobody asks. What is computed of no
    memory has no register.
    """

    variable: tirx.Var
    value: Expr
    register: tirx.Buffer
    loop: Loop

    @property
    def is_read(self) -> bool:
        """Whether it is read of memory."""
        return bool(loads_of(self.value))

    def of(self, k: Expr) -> Expr:
        """That of iteration `k`, which is the one that has been read."""
        if self.is_read:
            return tirx.BufferLoad(self.register, [i32(0)])
        return substitute(self.value, {self.loop.variable: k})

    def read(self, k: Expr) -> BufferStore:
        """Read that of iteration `k`."""

        def load(found: TensorLoad) -> Expr:
            buffer, offset = found.source, narrowed(found.indices[0]) * WORD
            name = f"buffer.load.{device.KINDS[WORD]}"
            zero = tirx.const(0, "int64")
            return device.call("int32", name, buffer.data, zero, bytes_of(buffer), offset, i32(0))

        value = substitute(self.value, {self.loop.variable: k})
        return BufferStore(self.register, mapped(value, (TensorLoad, load)), [i32(0)])


def moving_indices(
    run: Sequence[MemorySource], loop: Loop, number: int, is_shifted: bool
) -> tuple[MovingIndex, ...]:
    """The indices of neighbours that each iteration reads.

    Raises NotUnderstoodError where whether there is an element is read, too, or the aligned words
    around neighbours would be loaded: whether they lie in the array nobody knows.
    """
    moving = [v for v in loop.gathered if loop.is_moving(v) and depends(run[0].place, v)]
    asked = [c for source in run for c in source.conditions]
    if moving and is_shifted:
        raise NotUnderstoodError(
            f"where {_told(run[0])} lies is read from memory in each iteration, and is no whole"
            f" word: rows of an even number of {run[0].buffer.dtype} would be"
        )
    if any(loop.is_moving(v) for c in asked for v in variables_of(c)):
        raise NotUnderstoodError(
            f"whether {_told(run[0])} is there is read from memory in each iteration"
        )
    return tuple(
        MovingIndex(
            v, loop.gathered[v],
            tirx.decl_buffer((1,), "int32", f"{v.name}_{number}", scope="local"), loop,
        )
        for v in moving
    )  # fmt: skip


def _told(source: MemorySource) -> str:
    return f"`{source.buffer.name}[{source.place}]`"
