"""The findings, for people and for programs.

They are not among the other reports, which import what may be broken.
"""

from __future__ import annotations

from collections.abc import Sequence

from mfmadsl.columns import columns
from mfmadsl.doctor.finding import Finding, works


def doctor_text(findings: Sequence[Finding]) -> str:
    """A line for each finding, what to do below it, and the sum of all."""
    # What is broken may say so in several lines.
    cells = [(each.name, each.state, " ".join(each.found.split())) for each in findings]
    rows = columns(cells).split("\n")
    indent = " " * (max(len(f.name) for f in findings) + max(len(f.state) for f in findings) + 4)
    lines = []
    for row, each in zip(rows, findings, strict=True):
        lines.append(row)
        if each.remedy:
            lines.append(f"{indent}-> {' '.join(each.remedy.split())}")
    return "\n".join([*lines, "", _sum(findings)])


def doctor_json(findings: Sequence[Finding]) -> dict[str, object]:
    """The findings as JSON."""
    return {
        "works": works(findings),
        "findings": [
            {
                "name": each.name,
                "state": each.state,
                "needed": each.needed,
                "found": each.found,
                "remedy": each.remedy,
            }
            for each in findings
        ],
    }


def _sum(findings: Sequence[Finding]) -> str:
    broken = [each.name for each in findings if each.needed and each.state != "ok"]
    lacking = [each.name for each in findings if not each.needed and each.state != "ok"]
    if broken:
        return f"broken: mfmadsl needs {', '.join(broken)}"
    if lacking:
        return f"mfmadsl works; what only some commands need is not all there: {', '.join(lacking)}"
    return "mfmadsl works, and all is there"
