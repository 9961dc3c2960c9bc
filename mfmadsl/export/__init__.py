"""Layouts in the words of other projects, and what theirs differ in."""

from mfmadsl.export.difference import (
    DIFFERENT,
    EQUAL,
    REORDERED,
    Difference,
    OperandDifference,
    compare_layouts,
    diff_layouts,
)
from mfmadsl.export.error import ExportError
from mfmadsl.export.formats import FORMATS, Format, export_layouts, read_layouts
from mfmadsl.export.peers import PEERS, Peer

__all__ = [
    "DIFFERENT",
    "EQUAL",
    "FORMATS",
    "PEERS",
    "REORDERED",
    "Difference",
    "ExportError",
    "Format",
    "OperandDifference",
    "Peer",
    "compare_layouts",
    "diff_layouts",
    "export_layouts",
    "read_layouts",
]
