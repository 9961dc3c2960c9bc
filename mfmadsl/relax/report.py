"""Who scheduled which function of a module, and why not mfmadsl."""

from __future__ import annotations

from dataclasses import dataclass

from mfmadsl.columns import columns
from mfmadsl.model import AttentionTiling, Tiling
from mfmadsl.report.tiling import attention_line, tiling_line

OURS = "mfmadsl"


@dataclass(frozen=True)
class Scheduled:
    """A function: the rule that took it, `mfmadsl` or the name of one of dlight's; the tiling, if
    it is ours, and else the reason why not. Of several `kernels` for a symbolic extent the tiling
    is that of the largest. The rule is empty where none took it as far as is
    known: a rule of ours does not know of those that stand behind it."""

    function: str
    rule: str
    tiling: Tiling | AttentionTiling | None = None
    reason: str = ""
    kernels: int = 1

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
        rows += [(each.function, each.rule or "-", _why(each)) for each in self.functions]
        return columns(rows)


def _why(scheduled: Scheduled) -> str:
    if scheduled.tiling is None:
        return scheduled.reason
    if isinstance(scheduled.tiling, AttentionTiling):
        line = attention_line(scheduled.tiling)
    else:
        line = tiling_line(scheduled.tiling)
    return line if scheduled.kernels == 1 else f"{line}, the last of {scheduled.kernels} kernels"
