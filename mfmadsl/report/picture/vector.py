"""A micro-kernel's operand as grids: registers and elements in the place of lanes and registers."""

from __future__ import annotations

from mfmadsl.model import INDICES, VectorOperand
from mfmadsl.report.picture.grid import Cell, Grid, grid_of


def vector_grids(operand: VectorOperand) -> list[Grid]:
    """The matrix, each element as register:element."""

    def cell(row: int, column: int) -> Cell:
        register, element = operand.slot(row, column)
        return Cell(f"{register}:{element}", register, _tip(operand, register, element))

    axes = INDICES[operand.name]
    return [grid_of(operand.name.upper(), axes, operand.shape, operand.registers, cell)]


def vector_register_grids(operand: VectorOperand) -> list[Grid]:
    """The inverse: registers down, their elements across."""

    def cell(register: int, element: int) -> Cell:
        row, column = operand.place(register, element)
        return Cell(f"{row},{column}", register, _tip(operand, register, element))

    title = f"{operand.name.upper()}, what each register holds"
    if operand.broadcast:
        title += ", again and again"
    extents = operand.registers, operand.elements
    return [grid_of(title, ("register", "element"), extents, operand.registers, cell)]


def _tip(operand: VectorOperand, register: int, element: int) -> str:
    row, column = operand.place(register, element)
    return f"{operand.name.upper()}[{row}, {column}]: register {register}, element {element}"
