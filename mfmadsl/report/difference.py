"""How two layouts of an instruction differ, for people and for programs."""

from __future__ import annotations

from typing import Any

from mfmadsl.export import Difference, OperandDifference
from mfmadsl.report.columns import columns


def difference_json(difference: Difference) -> dict[str, Any]:
    """The verdict on all, and on each operand with the first element that lies elsewhere."""
    return {
        "name": difference.name,
        "other": difference.other,
        "verdict": difference.verdict,
        "operands": [
            {
                "operand": operand.operand,
                "verdict": operand.verdict,
                "element": _named(("block", "row", "column"), operand.element),
                "ours": _named(("lane", "element"), operand.ours),
                "theirs": _named(("lane", "element"), operand.theirs),
                "reason": operand.reason,
            }
            for operand in difference.operands
        ],
    }


def difference_text(difference: Difference) -> str:
    """A line for each operand, and why, where it does not lie alike."""
    head = f"{difference.name} and {difference.other}: {difference.verdict}"
    rows = [(operand.operand, operand.verdict, _why(operand)) for operand in difference.operands]
    return f"{head}\n\n{columns(rows)}"


def _why(operand: OperandDifference) -> str:
    if operand.element is None or operand.ours is None or operand.theirs is None:
        return ""
    block, row, column = operand.element
    name = operand.operand.upper()
    named = f"{name}[{row}, {column}]" + (f" of block {block}" if block else "")
    here, there = (
        f"element {slot} of lane {lane}" for lane, slot in (operand.ours, operand.theirs)
    )
    return f"{named} is {here} here, {there} there" + (f"; {operand.reason}" * bool(operand.reason))


def _named(names: tuple[str, ...], values: tuple[int, ...] | None) -> dict[str, int] | None:
    return None if values is None else dict(zip(names, values, strict=True))
