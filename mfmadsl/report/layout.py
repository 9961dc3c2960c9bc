"""An operand's layout as a table for people and as JSON for programs."""

from __future__ import annotations

from typing import Any

from mfmadsl.model import REGISTER_BITS, WAVE_SIZE, Intrinsic, Operand


def layout_json(intrinsic: Intrinsic, operand: Operand) -> dict[str, Any]:
    """Every element's place, in the order block, row, column.

    `register` counts 32-bit registers from the operand's first, `bits` are the lowest and the
    highest one in it.
    """
    rows, columns = operand.shape
    elements = []
    for row in range(rows):
        for column in range(columns):
            lane, register, low, high = operand.location(row, column)
            elements.append(
                {
                    "block": 0,
                    "row": row,
                    "column": column,
                    "lane": lane,
                    "register": register,
                    "bits": [low, high],
                }
            )
    return {
        "name": intrinsic.name,
        "operand": operand.name,
        "shape": [rows, columns],
        "blocks": 1,
        "wave": WAVE_SIZE,
        "elements": elements,
    }


def layout_table(operand: Operand) -> str:
    """The tile drawn as a matrix; a cell says the lane and where in its registers."""
    rows, columns = operand.shape
    packed = operand.type.bits < REGISTER_BITS

    def cell(row: int, column: int) -> str:
        lane, register, low, high = operand.location(row, column)
        return f"{lane}:{register}" + (f"[{low}:{high}]" if packed else "")

    cells = [[cell(r, c) for c in range(columns)] for r in range(rows)]
    width = max(len(text) for line in cells for text in line)
    margin = len(str(rows - 1))
    head = " " * margin + " | " + " ".join(f"{c:>{width}}" for c in range(columns))
    lines = [head, "-" * (margin + 1) + "+" + "-" * (len(head) - margin - 2)]
    for r, line in enumerate(cells):
        lines.append(f"{r:>{margin}} | " + " ".join(f"{text:>{width}}" for text in line))
    return "\n".join(lines)
