"""Who scheduled which function of a module, and why not mfmadsl."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from mfmadsl.columns import columns
from mfmadsl.model import AttentionTiling, Tiling
from mfmadsl.report.tiling import attention_line, tiling_line

OURS = "mfmadsl"

AnyTiling: TypeAlias = Tiling | AttentionTiling


@dataclass(frozen=True)
class Scheduled:
    """A function: the rule that took it, `mfmadsl` or the name of one of dlight's; the tiling, if
    it is ours, and else the reason why not. Of several `cases` for a symbolic extent, each with the
    extents that it is for, the tiling is that of the largest. The rule is empty where none took it
    as far as is known: a rule of ours does not know of those that stand behind it. `apart` says why
    it is no part of a product's kernel, where it might have become one."""

    function: str
    rule: str
    tiling: AnyTiling | None = None
    reason: str = ""
    cases: tuple[tuple[str, AnyTiling], ...] = ()
    apart: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether mfmadsl took it."""
        return self.tiling is not None


@dataclass(frozen=True)
class Report:
    """The functions of a module in their order; it prints as a table."""

    functions: tuple[Scheduled, ...] = ()

    @property
    def ours(self) -> tuple[Scheduled, ...]:
        """Those that mfmadsl took."""
        return tuple(each for each in self.functions if each.is_ours)

    def __str__(self) -> str:
        rows = [("FUNCTION", "BY", "TILING, OR WHY NOT MFMADSL")]
        for each in self.functions:
            first, *rest = _lines(each)
            rows.append((each.function, each.rule or "-", first))
            rows += [("", "", line) for line in rest]
        return columns(rows)


def ranges(extent: str, limits: Sequence[Sequence[int]]) -> list[str]:
    """For which values of an extent each of some cases is: those up to its `limits`, from the next
    smaller limit of any case on. The last one takes what is larger than all, too."""
    borders = sorted((limit, case) for case, own in enumerate(limits) for limit in own)
    if len(limits) < 2 or not borders:
        return [""] * len(limits)
    told: list[list[str]] = [[] for _ in limits]
    least, first = borders[0]
    told[first].append(f"{extent} <= {least}")
    for (low, _), (high, case) in pairwise(borders):
        told[case].append(f"{low} < {extent} <= {high}")
    told[-1].append(f"{extent} > {borders[-1][0]}")
    return [", ".join(each) for each in told]


def taken(function: str, cases: Sequence[tuple[str, AnyTiling]]) -> Scheduled:
    """The line of a function of ours, of one or several kernels."""
    _, tiling = cases[-1]
    return Scheduled(function, OURS, tiling, cases=tuple(cases) if len(cases) > 1 else ())


def with_reasons(report: Report, apart: dict[str, str]) -> Report:
    """The report, with the reasons why functions are no parts of products."""
    return Report(
        tuple(replace(each, apart=apart.get(each.function, "")) for each in report.functions)
    )


def _lines(scheduled: Scheduled) -> list[str]:
    """What is told of a function, one line or several."""
    if scheduled.tiling is None:
        return [scheduled.reason, *([scheduled.apart] if scheduled.apart else [])]
    if not scheduled.cases:
        return [_line(scheduled.tiling)]
    return [f"{which}: {_line(tiling)}" for which, tiling in scheduled.cases]


def _line(tiling: AnyTiling) -> str:
    return attention_line(tiling) if isinstance(tiling, AttentionTiling) else tiling_line(tiling)
