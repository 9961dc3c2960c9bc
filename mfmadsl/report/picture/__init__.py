"""Layouts as pictures: grids of cells, and what draws them in a terminal, as SVG and as a page."""

from mfmadsl.report.picture.grid import Cell, Grid
from mfmadsl.report.picture.operand import element_grids, register_grids
from mfmadsl.report.picture.svg import svg
from mfmadsl.report.picture.text import grid_text

__all__ = ["Cell", "Grid", "element_grids", "grid_text", "register_grids", "svg"]
