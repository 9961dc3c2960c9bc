"""A read in which lanes exchange elements, as a grid."""

from __future__ import annotations

from mfmadsl.model import Read
from mfmadsl.report.picture.grid import Cell, Grid, grid_of


def read_grids(read: Read) -> list[Grid]:
    """Lanes of a group down and registers across, each as lane:element that it comes from."""

    def cell(lane: int, register: int) -> Cell:
        source, element = read.origin(lane, register)
        tip = f"lane {lane}, register {register}: element {element} of what lane {source} reads"
        return Cell(f"{source}:{element}", source, tip)

    extents = read.lanes, read.registers
    return [grid_of("where registers come from", ("lane", "register"), extents, read.lanes, cell)]
