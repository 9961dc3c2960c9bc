"""Sums that start at zero: their registers are filled while the first fetch is on its way.

LLVM would fill them where the loop begins, which is when all waves wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import tirx
from tvm.tirx import BufferStore

from mfmadsl.passes import device
from mfmadsl.passes.expression import constant, i32, is_zero, scope_of

_WORDS = ("int32", "float32")


def fills_at_end(statements: Sequence[Any]) -> int:
    """How many of the last statements put a zero into a register, and do nothing else."""
    count = 0
    for statement in reversed(statements):
        if not _is_fill(statement):
            break
        count += 1
    return count


def filled_here(fill: BufferStore) -> BufferStore:
    """A fill with a zero that LLVM takes for an unknown number, and so makes where it stands."""
    dtype = str(fill.value.ty.dtype)
    zero = device.renewed(i32(0))
    value = zero if dtype == "int32" else tirx.reinterpret(dtype, zero)
    return BufferStore(fill.buffer, value, list(fill.indices))


def _is_fill(statement: Any) -> bool:
    return (
        isinstance(statement, BufferStore)
        and scope_of(statement.buffer) == "local"
        and str(statement.value.ty.dtype) in _WORDS
        and is_zero(statement.value)
        and all(constant(index) is not None for index in statement.indices)
    )
