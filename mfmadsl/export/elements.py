"""Every element of every operand, as JSON and as CSV: what any program can read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mfmadsl.export.error import ExportError
from mfmadsl.export.expand import Element, Slot, layout_of_slots
from mfmadsl.model import INDICES, REGISTER_BITS, Intrinsic, Layout, Operand

_COLUMNS = ("operand", "block", "row", "column", "lane", "register", "bits")


def write_json(intrinsic: Intrinsic, operands: Sequence[Operand], arch: str | None) -> str:
    """One object; of a sparse A, and of its index, the columns count stored elements."""
    told = {
        "name": intrinsic.name,
        "m": intrinsic.m,
        "n": intrinsic.n,
        "k": intrinsic.k,
        "blocks": intrinsic.blocks,
        "wave": intrinsic.wave_size,
        "operands": [
            {
                "operand": operand.name,
                "type": operand.type.name,
                "rows": operand.layout.rows,
                "columns": operand.layout.columns,
                "stored": operand.sparse,
                "elements": list(map(_as_json, _places(operand))),
            }
            for operand in operands
        ],
    }
    return json.dumps(told, indent=2)


def read_json(text: str) -> dict[str, Layout]:
    """Raises ExportError for JSON that is none, or is not what `write_json` makes."""
    try:
        told = json.loads(text)
        return {
            operand["operand"]: _layout(
                (told["blocks"], operand["rows"], operand["columns"]),
                told["wave"],
                _slots(operand["elements"]),
            )
            for operand in _once(told["operands"])
        }
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        if isinstance(error, ExportError):
            raise
        raise ExportError("this is not the JSON of `mfmadsl export --as json`") from None


def _once(operands: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Raises ExportError for an operand that no instruction has, or that is there twice."""
    names = [operand["operand"] for operand in operands]
    for name in names:
        if name not in INDICES:
            raise ExportError(f"no instruction has an operand {name!r}")
        if names.count(name) > 1:
            raise ExportError(f"operand {name} is there twice")
    return operands


def _slots(elements: Sequence[Mapping[str, Any]]) -> dict[Element, Slot]:
    """Raises ExportError for an element that is there twice, or a number that is none."""
    found: dict[Element, Slot] = {}
    for each in elements:
        numbers = [each[name] for name in ("block", "row", "column", "lane", "element")]
        if any(type(number) is not int for number in numbers):
            raise ExportError(f"{each}: each of an element's numbers is a whole one")
        block, row, column, lane, element = numbers
        if (block, row, column) in found:
            raise ExportError(f"element [{row}, {column}] of block {block} is there twice")
        found[block, row, column] = lane, element
    return found


def write_csv(intrinsic: Intrinsic, operands: Sequence[Operand], arch: str | None) -> str:
    """A line an element; `bits` are the lowest and the highest one, from the register's first."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(_COLUMNS)
    for operand in operands:
        for element, (lane, _), (register, low, high) in _places(operand):
            lines.writerow((operand.name, *element, lane, register, f"{low}:{high}"))
    return text.getvalue().rstrip("\n")


def read_csv(text: str) -> dict[str, Layout]:
    """The layouts of a table; how many elements a lane has follows from their bits."""
    rows = list(csv.DictReader(io.StringIO(text)))
    return {
        name: _of_rows([row for row in rows if row["operand"] == name])
        for name in dict.fromkeys(row["operand"] for row in rows)
    }


def _of_rows(rows: Iterable[Mapping[str, str]]) -> Layout:
    slots: dict[Element, Slot] = {}
    for row in rows:
        low, high = map(int, row["bits"].split(":"))
        element = (int(row["register"]) * REGISTER_BITS + low) // (high - low + 1)
        slots[int(row["block"]), int(row["row"]), int(row["column"])] = int(row["lane"]), element
    blocks, extents, columns = (1 + max(axis) for axis in zip(*slots, strict=True))
    lanes = 1 + max(lane for lane, _ in slots.values())
    return _layout((blocks, extents, columns), lanes, slots)


def _layout(shape: Element, lanes: int, slots: Mapping[Element, Slot]) -> Layout:
    blocks, rows, columns = shape
    if min(blocks, rows, columns, lanes) < 1 or len(slots) != blocks * rows * columns:
        raise ExportError(f"there are {len(slots)} elements, not {blocks} x {rows} x {columns}")
    if len(slots) % lanes:
        raise ExportError(f"{len(slots)} elements cannot be dealt out to {lanes} lanes")
    return layout_of_slots(shape, lanes, len(slots) // lanes, slots.__getitem__)


_Place = tuple[Element, Slot, tuple[int, int, int]]
"""An element, its slot, and its 32-bit register with the lowest and the highest bit."""


def _places(operand: Operand) -> Iterator[_Place]:
    layout, bits = operand.layout, operand.type.bits
    area = layout.rows * layout.columns
    for number, (lane, element) in enumerate(layout.slots):
        where = number // area, number % area // layout.columns, number % layout.columns
        register, low = divmod(element * bits, REGISTER_BITS)
        yield where, (lane, element), (register, low, low + bits - 1)


def _as_json(place: _Place) -> dict[str, Any]:
    (block, row, column), (lane, element), (register, low, high) = place
    return {
        "block": block,
        "row": row,
        "column": column,
        "lane": lane,
        "element": element,
        "register": register,
        "bits": [low, high],
    }
