"""An accelerator in words: what its C function computes, of buffers in which scopes."""

from __future__ import annotations

from mfmadsl.model import Accelerator


def accelerator_summary(entry: Accelerator) -> str:
    """What it computes, its shape, the function that it calls, and its operands."""
    lines = [f"{entry.name}: C[i, j] += A * B, by a C function"]
    if entry.doc:
        lines += ["", *entry.doc.splitlines()]
    lines += ["", f"shape   m={entry.m} n={entry.n} k={entry.k}", f"calls   {entry.function}"]
    return "\n".join([*lines, *(buffer_line(entry, name) for name in "abc")])


def buffer_line(entry: Accelerator, name: str) -> str:
    """An operand, `a`, `b` or `c`: its type, its indices and its scope."""
    buffer = {"a": entry.a, "b": entry.b, "c": entry.c}[name]
    row, column = buffer.indices
    extents = f"{entry.extent(row)}x{entry.extent(column)}"
    return f'{name:<7} {buffer.type}[{row}, {column}], {extents} in "{buffer.scope}"'
