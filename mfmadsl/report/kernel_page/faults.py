"""A page about a kernel's faults: each at its line, with the access that it collides with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mfmadsl.emulator.text.assembly import code_of
from mfmadsl.report.html import page

if TYPE_CHECKING:
    from mfmadsl.emulator.error import Fault

_AROUND = 4  # lines before and after what is shown


@dataclass(frozen=True)
class _Line:
    """A line of the text: `role` is "fault", "earlier" or nothing."""

    number: int
    text: str
    role: str = ""


def faults_page(
    name: str, texts: Iterable[str], faults: Sequence[Fault], counts: Sequence[int], waves: int
) -> str:
    """HTML that needs nothing else; `counts` says how often each fault was seen.

    `texts` are the assembly of all launches: a fault's lines are of the first in which its
    instruction stands at its line.
    """
    split = [text.splitlines() for text in dict.fromkeys(texts)]
    told = [
        {
            "kind": fault.kind,
            "message": fault.message,
            "count": count,
            "where": _where(fault),
            "earlier": fault.earlier,
            "line": fault.line,
            "source": fault.source,
            "pieces": _pieces(fault, _text_of(fault, split)),
        }
        for fault, count in zip(faults, counts, strict=True)
    ]
    return page("faults.html.jinja", name=name, faults=told, waves=waves)


def _where(fault: Fault) -> str:
    parts = []
    if fault.workgroup is not None:
        parts.append("workgroup {}, {}, {}".format(*fault.workgroup))
    parts += [f"{n} {v}" for n, v in (("wave", fault.wave), ("lane", fault.lane)) if v is not None]
    return ", ".join(parts)


def _text_of(fault: Fault, texts: Sequence[list[str]]) -> list[str]:
    """The lines of the text that the fault is of; none where no text has it."""
    if fault.line is None or fault.instruction is None:
        return []
    wanted = fault.instruction.split()
    return next(
        (text for text in texts if text[fault.line - 1 : fault.line]
         and code_of(text[fault.line - 1]).split() == wanted),
        [],
    )  # fmt: skip


def _pieces(fault: Fault, lines: Sequence[str]) -> list[list[_Line]]:
    """The lines around the fault and around what it collides with: one piece where they meet."""
    roles = {}
    if fault.earlier is not None:
        roles[fault.earlier.line] = "earlier"
    if fault.line is not None:
        roles[fault.line] = "fault"
    shown = sorted(
        {
            number
            for line in roles
            for number in range(line - _AROUND, line + _AROUND + 1)
            if 1 <= number <= len(lines)
        }
    )
    pieces: list[list[_Line]] = []
    for number in shown:
        if not pieces or pieces[-1][-1].number != number - 1:
            pieces.append([])
        pieces[-1].append(_Line(number, lines[number - 1], roles.get(number, "")))
    return pieces
