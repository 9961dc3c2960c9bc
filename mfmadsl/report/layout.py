"""An operand's layout as a table for people and as JSON for programs."""

from __future__ import annotations

from typing import Any

from mfmadsl.model import (
    Fragment,
    Intrinsic,
    Location,
    Modifiers,
    Operand,
    source_block,
    source_lane,
)

PLAIN = Modifiers()


def locate(
    operand: Operand, row: int, column: int, block: int = 0, modifiers: Modifiers = PLAIN
) -> Location:
    """Where the instruction reads an element from under these modifiers.

    cbsz and abid make blocks of A read another block's elements, blgp lanes of B another lane's.
    In a sparse instruction abid chooses a set of the index, if cbsz is 0.
    """
    if operand.name == "a" and not operand.sparse:
        block = source_block(block, modifiers.cbsz, modifiers.abid)
    place = operand.location(row, column, block)
    if operand.name == "b":
        return place._replace(lane=source_lane(place.lane, modifiers.blgp, operand.layout.lanes))
    if operand.name == "index" and not modifiers.cbsz:
        offset = modifiers.abid * operand.layout.elements_per_lane * operand.type.bits
        return place._replace(low=place.low + offset, high=place.high + offset)
    return place


def layout_json(
    entry: Intrinsic | Fragment, operand: Operand, modifiers: Modifiers = PLAIN
) -> dict[str, Any]:
    """Every element's place, in the order block, row, column.

    `register` counts 32-bit registers from the operand's first, `bits` are the lowest and the
    highest one in it; an element that goes on in the next register has bits past 31.
    """
    rows, columns = operand.shape
    elements = []
    for block in range(operand.layout.blocks):
        for row in range(rows):
            for column in range(columns):
                place = locate(operand, row, column, block, modifiers)
                elements.append(
                    {
                        "block": block,
                        "row": row,
                        "column": column,
                        "lane": place.lane,
                        "register": place.register,
                        "bits": [place.low, place.high],
                    }
                )
    return {
        "name": entry.name,
        "operand": operand.name,
        "shape": [rows, columns],
        "blocks": operand.layout.blocks,
        "wave": operand.layout.lanes,
        "elements": elements,
    }
