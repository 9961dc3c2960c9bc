"""Elements under other names, so that lanes and registers count up.

A product does not change when rows of A and C, columns of B and C, or k of A and B are renamed
alike. TVM's iterators count up only, and so do loops that are bound to lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from mfmadsl.model.closed_form import Digit
from mfmadsl.model.intrinsic import Intrinsic, Operand
from mfmadsl.model.layout import Layout, NoClosedFormError

_ROW, _COLUMN, _BLOCK = "row", "column", "block"


def upright(intrinsic: Intrinsic) -> Intrinsic:
    """The same product with rows, columns and k named so that lanes and registers count up.

    C has its way over rows and columns, A over k: their digits of these never count down. Those of
    A and B that are left, because C or A fixed the names, may (`numbered_up`). What counts down
    is counted from its other end: the names are changed within the tile only. The instruction
    itself, if nothing has to change, or if C or A is no sum of digits; else one with another name.
    """
    return _upright(intrinsic) or intrinsic


@cache
def _upright(intrinsic: Intrinsic) -> Intrinsic | None:
    if intrinsic.sparse or intrinsic.scales:
        return None
    falling = _falling(intrinsic.c.layout)
    rows, columns = falling[_ROW], falling[_COLUMN]
    depth = _falling(intrinsic.a.layout)[_COLUMN]
    if not (rows or columns or depth):
        return None
    i, j, k = (
        [_from_other_end(x, digits) for x in range(extent)]
        for extent, digits in ((intrinsic.m, rows), (intrinsic.n, columns), (intrinsic.k, depth))
    )
    return replace(
        intrinsic,
        name=f"{intrinsic.name}_upright",
        a=_renamed(intrinsic.a, i, k),
        b=_renamed(intrinsic.b, k, j),
        c=_renamed(intrinsic.c, i, j),
    )


def numbered_up(layout: Layout) -> Layout:
    """The layout with lanes and registers numbered so that none counts down; itself if none does.

    Digits that count down are counted from their other ends, which numbers lanes and registers anew
    each for itself: it is its own inverse.
    """
    return _numbered_up(layout) or layout


@cache
def _numbered_up(layout: Layout) -> Layout | None:
    if not any(_falling(layout).values()):
        return None
    forms = layout.forward(_ROW, _COLUMN, _BLOCK)
    rows = ((b, r) for b in range(layout.blocks) for r in range(layout.rows))
    slots = []
    for block, row in rows:
        for column in range(layout.columns):
            place = {_BLOCK: block, _ROW: row, _COLUMN: column}
            lane, register = (
                sum(abs(digit.value(place[digit.variable])) for digit in form.digits)
                for form in forms
            )
            slots.append((lane, register))
    if len(set(slots)) < len(slots):
        return None
    return replace(layout, slots=tuple(slots))


def _falling(layout: Layout) -> dict[str, list[Digit]]:
    """The digits of each coordinate by which a lane or register counts down."""
    found: dict[str, list[Digit]] = {_ROW: [], _COLUMN: [], _BLOCK: []}
    try:
        forms = layout.forward(_ROW, _COLUMN, _BLOCK)
    except NoClosedFormError:
        return found
    for form in forms:
        for digit in form.digits:
            if digit.scale < 0:
                found[digit.variable].append(digit)
    return found


def _from_other_end(x: int, digits: Sequence[Digit]) -> int:
    for digit in digits:
        value = x // digit.divisor % digit.modulus
        x += (digit.modulus - 1 - 2 * value) * digit.divisor
    return x


def _renamed(operand: Operand, rows: Sequence[int], columns: Sequence[int]) -> Operand:
    """The operand whose element (r, c) of each block is the one at (rows[r], columns[c])."""
    layout = operand.layout
    slots = tuple(
        layout.slot(row, column, block)
        for block in range(layout.blocks)
        for row in rows
        for column in columns
    )
    return replace(operand, layout=replace(layout, slots=slots))
