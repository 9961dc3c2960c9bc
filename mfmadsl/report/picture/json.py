"""A look at an operand as JSON: the place of every element."""

from __future__ import annotations

from typing import Any

from mfmadsl.error import ArgumentError
from mfmadsl.model import Microkernel, Operand, Read
from mfmadsl.report.layout import layout_json
from mfmadsl.report.microkernel import vectors_json
from mfmadsl.report.picture.look import Look, operands_of
from mfmadsl.report.read import read_json


def look_json(look: Look) -> dict[str, Any]:
    """What `schema` calls a layout, vectors or a read. Raises ArgumentError for a look at banks."""
    if isinstance(look.entry, Read):
        return read_json(look.entry)
    if look.view == "banks":
        raise ArgumentError("the banks of a tile are a picture: take --format table, svg or html")
    (operand,) = operands_of(look)
    if isinstance(look.entry, Microkernel):
        return vectors_json(look.entry, look.entry.operand(operand.name))
    assert isinstance(operand, Operand)
    return layout_json(look.entry, operand, look.modifiers)
