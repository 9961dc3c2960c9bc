"""Sums that start at zero: their registers are filled while the first fetch is on its way.

LLVM would fill them where the loop begins, which is when all waves wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from tvm import tirx
from tvm.tirx import BufferStore, Expr, Stmt

from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.expression import (
    constant,
    elements_of,
    i32,
    is_zero,
    of_length,
    ramp,
    scope_of,
)

_WORDS = ("int32", "float32")


def fills_at_end(statements: Sequence[Stmt]) -> list[BufferStore]:
    """The last statements, as far as they put a zero into a register, and do nothing else."""
    found: list[BufferStore] = []
    for statement in reversed(statements):
        if not _is_fill(statement):
            break
        found.insert(0, statement)
    return found


def filled_here(fills: Sequence[BufferStore]) -> list[BufferStore]:
    """The fills, with zeros that LLVM takes for unknown numbers, and so makes where they stand."""
    words = [(fill.buffer, index) for fill in fills for index in elements_of(fill.indices[0])]
    found = []
    while words:
        (buffer, index), *after = words
        is_pair = bool(after) and after[0][0].same_as(buffer) and after[0][1] == index + 1
        count = 2 if is_pair else 1
        found.append(BufferStore(buffer, _zeros(str(buffer.dtype), count), [ramp(index, count)]))
        words = words[count:]
    return found


def _zeros(dtype: str, count: int) -> Expr:
    zeros = device.zeros() if count == 2 else device.renewed(i32(0))
    return zeros if dtype == "int32" else tirx.reinterpret(of_length(dtype, count), zeros)


def _is_fill(statement: Stmt) -> TypeGuard[BufferStore]:
    return (
        isinstance(statement, BufferStore)
        and scope_of(statement.buffer) == "local"
        and str(statement.buffer.dtype) in _WORDS
        and is_zero(statement.value)
        and len(statement.indices) == 1
        and _is_known(statement.indices[0])
    )


def _is_known(index: Expr) -> bool:
    """Whether it names registers by numbers."""
    if isinstance(index, tirx.Ramp):
        return constant(index.base) is not None and constant(index.stride) == 1
    return constant(index) is not None
