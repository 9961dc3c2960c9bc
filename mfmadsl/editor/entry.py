"""An entry and its operands in a few lines: what `mfmadsl show` tells, shortened."""

from __future__ import annotations

from collections.abc import Container, Sequence

from mfmadsl.language.kind import Described
from mfmadsl.model import (
    Accelerator,
    Fragment,
    Intrinsic,
    Microkernel,
    Operand,
    VectorOperand,
)
from mfmadsl.report.accelerator import buffer_line
from mfmadsl.report.intrinsic import operand_line
from mfmadsl.report.microkernel import vector_line
from mfmadsl.report.picture.grid import Grid
from mfmadsl.report.picture.operand import element_grids
from mfmadsl.report.picture.text import grids_text
from mfmadsl.report.picture.vector import vector_register_grids
from mfmadsl.report.summary import summary_of

_WIDEST, _LONGEST = 110, 40
"""Columns and lines of the largest table that is shown."""

_NAMED = 12
"""Instructions of an entry of several types that are named."""


def entry_summary(described: Sequence[Described]) -> str:
    """What the entry describes, of several types the first; and the names of the others."""
    first, *others = described
    told = summary_of(first)
    if others:
        names = ", ".join(other.name for other in others[:_NAMED])
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        told += f"\n\nlikewise {names}{more}"
    return told


def operand_summary(described: Sequence[Described], name: str, types: Container[str] = ()) -> str:
    """Where the elements of an operand lie, and of a sparse A also its index; "" of none.

    Of several instructions of an entry it is the first with one of the `types`. Of a small operand
    the table is drawn.
    """
    typed = (
        entry
        for entry in described
        if isinstance(entry, Intrinsic)
        and name in entry.operands
        and entry.operands[name].type.name in types
    )
    entry = next(typed, described[0] if described else None)
    if isinstance(entry, Intrinsic):
        names = [name, *(["index"] if name == "a" and entry.sparse else [])]
        held = [entry.operands[each] for each in names if each in entry.operands]
        told = [_placed(operand_line(o, entry), element_grids(o), entry, o) for o in held]
        return "\n\n".join(told)
    if isinstance(entry, Fragment):
        operand = entry.operand
        return _placed(summary_of(entry).splitlines()[-1], element_grids(operand), entry, None)
    if isinstance(entry, Microkernel) and name in entry.operands:
        vector = entry.operands[name]
        return _placed(vector_line(vector, entry), vector_register_grids(vector), entry, vector)
    if isinstance(entry, Accelerator) and name in ("a", "b", "c"):
        return buffer_line(entry, name)
    return ""


def _placed(
    line: str, grids: list[Grid], entry: Described, operand: Operand | VectorOperand | None
) -> str:
    """The line, and the table, or how to have it drawn."""
    table = grids_text(grids, _WIDEST)
    if table.count("\n") < _LONGEST:
        return f"{line}\n\n{table}"
    option = "" if operand is None else f" --operand {operand.name}"
    return f"{line}\n\nmfmadsl show {entry.name} --spec FILE{option} draws it"
