"""An operand's layout as grids: where each element lies, and the inverse, what each lane holds."""

from __future__ import annotations

from collections import defaultdict
from typing import Literal

from mfmadsl.model import INDICES, REGISTER_BITS, Location, Modifiers, Operand
from mfmadsl.report.layout import PLAIN, locate
from mfmadsl.report.picture.grid import Cell, Grid, grid_of

Shading = Literal["lane", "register"]
"""What the colour of a cell tells."""

SHADINGS: tuple[Shading, ...] = ("lane", "register")

Element = tuple[int, int, int]
"""Block, row, column."""


def element_grids(
    operand: Operand, modifiers: Modifiers = PLAIN, shading: Shading = "lane"
) -> list[Grid]:
    """A grid for each block: the matrix, each element as lane:register, with bits if it is narrow.

    `shading` counts lanes, or places in the registers of a lane.
    """
    places = _held(operand, modifiers)
    number = {place: count for count, place in enumerate(sorted(_of_a_lane(places)))}

    def drawn(block: int) -> Grid:
        def cell(row: int, column: int) -> Cell:
            place = locate(operand, row, column, block, modifiers)
            shade = place.lane if shading == "lane" else number[place._replace(lane=0)]
            tip = f"{_named(operand, block, row, column)}: lane {place.lane}, {_bits(place)}"
            return Cell(f"{place.lane}:{register_label(operand, place)}", shade, tip)

        count = operand.layout.blocks
        title = operand.name.upper() + (f", block {block}" if count > 1 else "")
        shades = operand.layout.lanes if shading == "lane" else len(number)
        return grid_of(title, _axes(operand), operand.shape, shades, cell)

    return [drawn(block) for block in range(operand.layout.blocks)]


def register_grids(
    operand: Operand, modifiers: Modifiers = PLAIN, shading: Shading = "lane"
) -> list[Grid]:
    """The inverse: lanes down and registers across, each with the elements that it holds.

    Under modifiers several elements are read from one place, and none from another.
    """
    held = _held(operand, modifiers)
    places = sorted(_of_a_lane(held))

    def cell(lane: int, number: int) -> Cell:
        elements = held.get(places[number]._replace(lane=lane), [])
        named = ", ".join(_named(operand, *each) for each in elements) or "not read"
        tip = f"lane {lane}, {_bits(places[number])}: {named}"
        if not elements:
            return Cell("", None, tip)
        return Cell(_label(operand, elements), lane if shading == "lane" else number, tip)

    lanes = operand.layout.lanes
    return [
        grid_of(
            f"{operand.name.upper()}, what each lane holds", ("lane", "register"),
            (lanes, len(places)), lanes if shading == "lane" else len(places), cell,
            [register_label(operand, place) for place in places],
        )
    ]  # fmt: skip


def register_label(operand: Operand, place: Location) -> str:
    """A register, and the bits of it where an element does not fill it."""
    packed = operand.sparse or operand.type.bits < REGISTER_BITS
    return f"{place.register}" + (f"[{place.low}:{place.high}]" if packed else "")


def _held(operand: Operand, modifiers: Modifiers) -> dict[Location, list[Element]]:
    """The elements that are read from each place."""
    rows, columns = operand.shape
    found: dict[Location, list[Element]] = defaultdict(list)
    for block in range(operand.layout.blocks):
        for row in range(rows):
            for column in range(columns):
                place = locate(operand, row, column, block, modifiers)
                found[place].append((block, row, column))
    return found


def _of_a_lane(held: dict[Location, list[Element]]) -> set[Location]:
    return {place._replace(lane=0) for place in held}


def _bits(place: Location) -> str:
    """A place in words: registers count from the operand's first."""
    last = place.register + place.high // REGISTER_BITS
    registers = f"registers {place.register} and {last}" if last > place.register else (
        f"register {place.register}"
    )  # fmt: skip
    return f"{registers}, bits {place.low} to {place.high}"


def _named(operand: Operand, block: int, row: int, column: int) -> str:
    where = f" of block {block}" if operand.layout.blocks > 1 else ""
    return f"{operand.name.upper()}[{row}, {column}]{where}"


def _label(operand: Operand, elements: list[Element]) -> str:
    """The first element, and that there are others: those of its row, or of other blocks."""
    block, row, column = elements[0]
    last = elements[-1]
    of_block = f"{block}:" if operand.layout.blocks > 1 else ""
    if len(elements) > 1 and last == (block, row, column + len(elements) - 1):
        return f"{of_block}{row},{column}-{last[2]}"
    more = f" +{len(elements) - 1}" if len(elements) > 1 else ""
    return f"{of_block}{row},{column}{more}"


def _axes(operand: Operand) -> tuple[str, str]:
    """What counts rows and columns; of scales it is groups of k."""
    down, across = INDICES[operand.name]
    if operand.name.startswith("scale"):
        return down.replace("k", "g"), across.replace("k", "g")
    return down, across
