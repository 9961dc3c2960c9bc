"""CuTe's layouts: (thread, value) to a coordinate of the tile, as shape:stride.

As in CuTe's MMA_Traits the coordinate is (M, K) of A, (N, K) of B and (M, N) of C, counted with the
first of them fastest; blocks are a third mode. Of a sparse A, and of its index, K counts what is
stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod

from mfmadsl.export.error import ExportError
from mfmadsl.export.expand import Element, Slot, layout_of_elements, shape_of
from mfmadsl.model import Intrinsic, Layout, Operand

Modes = list[tuple[int, int]]
"""(extent, stride) of each mode, the fastest first."""

_ROW_LAST = ("b", "scale_b")
"""Operands whose columns count first: CuTe has B as (N, K)."""

_TYPE = re.compile(r"^// (\w+): \(T(\d+), V(\d+)\) -> \((.*)\)\n(.*)$", re.MULTILINE)


def write(intrinsic: Intrinsic, operands: Sequence[Operand], arch: str | None) -> str:
    """C++ types, with what they map in a comment."""
    parts = [f"// {intrinsic.name}: (thread, value) to a coordinate, the first mode fastest."]
    for operand in operands:
        layout = operand.layout
        number = _number(operand.name, layout)
        threads = _modes(_of_lane(number), layout.lanes)
        values = _modes(_of_value(number), layout.elements_per_lane)
        if _from_modes(operand.name, shape_of(layout), threads, values) != layout:
            raise ExportError(
                f"{intrinsic.name}: `{operand.name}` is no sum of strides of thread and value, as "
                "a layout of CuTe's is"
            )
        head = f"(T{layout.lanes}, V{layout.elements_per_lane}) -> ({_coordinate(operand)})"
        parts.append(
            f"// {operand.name}: {head}\n"
            f"using {_type_name(operand.name)} = "
            f"Layout<Shape<{_numbers(threads, 0, 'Shape')}, {_numbers(values, 0, 'Shape')}>, "
            f"Stride<{_numbers(threads, 1, 'Stride')}, {_numbers(values, 1, 'Stride')}>>;"
        )
    return "\n\n".join(parts)


def read(text: str) -> dict[str, Layout]:
    """The layouts of what `write` makes."""
    found = {}
    for name, lanes, _, coordinate, line in _TYPE.findall(text):
        first, second, *blocks = (int(mode) for mode in re.findall(r"\d+", coordinate))
        rows, columns = (second, first) if name in _ROW_LAST else (first, second)
        shapes, strides = line.split("Stride<", 1)
        modes = list(zip(_integers(shapes), _integers(strides), strict=True))
        count = next(n for n in range(1, len(modes)) if prod(e for e, _ in modes[:n]) == int(lanes))
        shape = (blocks[0] if blocks else 1, rows, columns)
        layout = _from_modes(name, shape, modes[:count], modes[count:])
        if layout is not None:
            found[name] = layout
    return found


def _integers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"(?:\b_|Int<)(\d+)", text)]


def _number(operand: str, layout: Layout) -> Callable[[Slot], int]:
    """The coordinate of what lies at a place, as one number."""

    def number(slot: Slot) -> int:
        block, row, column = layout.element(*slot)
        area = block * layout.rows * layout.columns
        if operand in _ROW_LAST:
            return column + layout.columns * row + area
        return row + layout.rows * column + area

    return number


def _of_lane(number: Callable[[Slot], int]) -> Callable[[int], int]:
    return lambda lane: number((lane, 0))


def _of_value(number: Callable[[Slot], int]) -> Callable[[int], int]:
    return lambda value: number((0, value))


def _from_modes(operand: str, shape: Element, threads: Modes, values: Modes) -> Layout | None:
    """The layout of such modes; None if they put elements outside of the tile or on each other."""
    blocks, rows, columns = shape
    lanes, per_lane = (prod(extent for extent, _ in modes) for modes in (threads, values))

    def element(slot: Slot) -> Element:
        lane, value = slot
        block, rest = divmod(_at(threads, lane) + _at(values, value), rows * columns)
        if operand in _ROW_LAST:
            return block, rest // columns, rest % columns
        return block, rest % rows, rest // rows

    try:
        return layout_of_elements((blocks, rows, columns), lanes, per_lane, element)
    except ExportError:
        return None


def _at(modes: Modes, number: int) -> int:
    total = 0
    for extent, stride in modes:
        number, digit = divmod(number, extent)
        total += digit * stride
    return total


def _modes(function: Callable[[int], int], count: int) -> Modes:
    """The longest modes, each of which divides what is left, that say what the function says."""
    modes: Modes = []
    start = 1
    while start < count:
        stride = function(start) - function(0)
        extent = 2
        while extent * start < count and function(extent * start) - function(0) == extent * stride:
            extent += 1
        extent = max((e for e in range(2, extent + 1) if count % (start * e) == 0), default=0)
        if not extent:
            return []  # no layout at all: it is told by reading it back
        modes.append((extent, stride))
        start *= extent
    return modes or [(1, 0)]


def _coordinate(operand: Operand) -> str:
    layout = operand.layout
    first = "N" if operand.name in _ROW_LAST else "M"
    second = "N" if operand.name == "c" else "K"
    extents = (layout.rows, layout.columns)
    rows, columns = reversed(extents) if operand.name in _ROW_LAST else extents
    blocks = f", L{layout.blocks}" if layout.blocks > 1 else ""
    return f"{first}{rows}, {second}{columns}{blocks}"


def _type_name(operand: str) -> str:
    return "".join(part.capitalize() for part in operand.split("_")) + "Layout"


def _numbers(modes: Modes, which: int, kind: str) -> str:
    """The extents or the strides of some modes: one number, or a tuple of them."""
    texts = [_integer(mode[which]) for mode in modes]
    return texts[0] if len(texts) == 1 else f"{kind}<{', '.join(texts)}>"


def _integer(number: int) -> str:
    """CuTe has short names of the powers of two."""
    return f"_{number}" if number & (number - 1) == 0 else f"Int<{number}>"
