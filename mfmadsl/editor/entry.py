"""An entry and its operands in a few lines: what `mfmadsl show` tells, shortened."""

from __future__ import annotations

from collections.abc import Sequence

from mfmadsl.language.check import Described
from mfmadsl.model import (
    Accelerator,
    Fragment,
    Intrinsic,
    Microkernel,
    NoClosedFormError,
    Operand,
    Read,
    VectorOperand,
)
from mfmadsl.report.intrinsic import fragment_summary, intrinsic_summary, operand_line
from mfmadsl.report.microkernel import microkernel_summary, vector_line
from mfmadsl.report.picture.operand import element_grids
from mfmadsl.report.picture.text import grids_text
from mfmadsl.report.picture.vector import vector_register_grids
from mfmadsl.report.read import read_summary

_WIDEST, _LONGEST = 120, 20
"""Columns and lines of the largest table that is shown."""

_NAMED = 12
"""Instructions of an entry of several types that are named."""


def entry_summary(described: Sequence[Described]) -> str:
    """What the entry describes, of several types the first; and the names of the others."""
    first, *others = described
    told = _summary(first)
    if others:
        names = ", ".join(other.name for other in others[:_NAMED])
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        told += f"\n\nlikewise {names}{more}"
    return told


def operand_summary(entry: Described, name: str) -> str:
    """Where the elements of an operand lie, and of a sparse A also its index; "" of none.

    Of a small one the table is drawn.
    """
    if isinstance(entry, Intrinsic):
        names = [name, *(["index"] if name == "a" and entry.sparse else [])]
        held = [entry.operands[each] for each in names if each in entry.operands]
        return "\n\n".join(_placed(operand_text(o, entry), grids_text(element_grids(o))) for o in held)
    if isinstance(entry, Fragment):
        operand = entry.operand
        return _placed(_summary(entry).splitlines()[-1], grids_text(element_grids(operand)))
    if isinstance(entry, Microkernel) and name in entry.operands:
        vector = entry.operands[name]
        return _placed(operand_text(vector, entry), grids_text(vector_register_grids(vector)))
    if isinstance(entry, Accelerator) and name in ("a", "b", "c"):
        return _buffer_line(entry, name)
    return ""


def operand_text(operand: Operand | VectorOperand, entry: Intrinsic | Microkernel) -> str:
    """Its type, its registers, and the lane and the element of each of its elements."""
    try:
        if isinstance(operand, VectorOperand):
            assert isinstance(entry, Microkernel)
            return vector_line(operand, entry)
        assert isinstance(entry, Intrinsic)
        return operand_line(operand, entry)
    except NoClosedFormError:
        return f"{operand.name} {operand.type}, whose places no short formula tells"


def _placed(line: str, table: str) -> str:
    rows = table.splitlines()
    small = len(rows) <= _LONGEST and max(map(len, rows)) <= _WIDEST
    return f"{line}\n\n{table}" if small else line


def _summary(entry: Described) -> str:
    try:
        if isinstance(entry, Intrinsic):
            return intrinsic_summary(entry)
        if isinstance(entry, Microkernel):
            return microkernel_summary(entry)
        if isinstance(entry, Fragment):
            return fragment_summary(entry)
        if isinstance(entry, Read):
            return read_summary(entry)
    except NoClosedFormError:
        return f"{entry.name}\n\n{entry.doc}\n\nits layouts are one-to-one, but no short formula"
    return _accelerator_summary(entry)


def _accelerator_summary(entry: Accelerator) -> str:
    lines = [f"{entry.name}: C[i, j] += A * B, by a C function"]
    if entry.doc:
        lines += ["", *entry.doc.splitlines()]
    lines += ["", f"shape   m={entry.m} n={entry.n} k={entry.k}", f"calls   {entry.function}"]
    return "\n".join([*lines, *(_buffer_line(entry, name) for name in "abc")])


def _buffer_line(entry: Accelerator, name: str) -> str:
    buffer = {"a": entry.a, "b": entry.b, "c": entry.c}[name]
    row, column = buffer.indices
    extents = f"{entry.extent(row)}x{entry.extent(column)}"
    return f'{name:<7} {buffer.type}[{row}, {column}], {extents} in "{buffer.scope}"'
