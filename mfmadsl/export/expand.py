"""From what a format says of each place, or of each element, back to the layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from mfmadsl.export.error import ExportError
from mfmadsl.model import Layout

Element = tuple[int, int, int]
"""(block, row, column)."""

Slot = tuple[int, int]
"""(lane, number of the element in that lane)."""


def layout_of_slots(
    shape: Element, lanes: int, per_lane: int, slot: Callable[[Element], Slot]
) -> Layout:
    """The layout that has each element of (blocks, rows, columns) where `slot` says.

    Raises ExportError unless every place of every lane holds one element.
    """
    blocks, rows, columns = shape
    slots = tuple(map(slot, elements_of(shape)))
    if sorted(slots) != list(product(range(lanes), range(per_lane))):
        raise ExportError(
            f"{blocks} x {rows} x {columns} elements do not fill {lanes} lanes of {per_lane} each, "
            "every place once"
        )
    return Layout(rows, columns, lanes, per_lane, slots, blocks)


def layout_of_elements(
    shape: Element, lanes: int, per_lane: int, element: Callable[[Slot], Element]
) -> Layout:
    """The layout whose lanes hold at each place the element that `element` says.

    Raises ExportError unless every element lies in one place.
    """
    places = {element(slot): slot for slot in product(range(lanes), range(per_lane))}
    if set(places) != set(elements_of(shape)) or len(places) != lanes * per_lane:
        blocks, rows, columns = shape
        raise ExportError(
            f"{lanes} lanes of {per_lane} elements each do not hold {blocks} x {rows} x {columns} "
            "elements, every one once"
        )
    return layout_of_slots(shape, lanes, per_lane, places.__getitem__)


def elements_of(shape: Element) -> Iterator[Element]:
    """Every element of (blocks, rows, columns), in that order."""
    blocks, rows, columns = shape
    return product(range(blocks), range(rows), range(columns))


def shape_of(layout: Layout) -> Element:
    """Blocks, rows and columns of a layout."""
    return layout.blocks, layout.rows, layout.columns
