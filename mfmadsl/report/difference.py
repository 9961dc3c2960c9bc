"""How two layouts of an instruction differ, for people and for programs."""

from __future__ import annotations

from typing import Any

from mfmadsl.export import Difference, OperandDifference


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
    """A line for each operand, and below it why, where it does not lie alike."""
    width = max(len(operand.operand) for operand in difference.operands)
    lines = [f"{difference.name} and {difference.other}: {difference.verdict}", ""]
    for operand in difference.operands:
        lines.append(f"{operand.operand.ljust(width)}  {operand.verdict}")
        lines += [f"{' ' * width}  {why}" for why in _why(operand)]
    return "\n".join(lines)


def _why(operand: OperandDifference) -> list[str]:
    """The first element that lies elsewhere, and what is known of the rest."""
    if operand.element is None or operand.ours is None or operand.theirs is None:
        return []
    block, row, column = operand.element
    within = f" of block {block}" if block else ""
    here, there = (
        f"element {slot} of lane {lane}" for lane, slot in (operand.ours, operand.theirs)
    )
    where = f"{operand.operand.upper()}[{row}, {column}]{within} is {here} here, {there} there"
    return [where, *([operand.reason] if operand.reason else [])]


def _named(names: tuple[str, ...], values: tuple[int, ...] | None) -> dict[str, int] | None:
    return None if values is None else dict(zip(names, values, strict=True))
