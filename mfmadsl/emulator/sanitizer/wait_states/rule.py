"""A rule: after which instruction, before which one, and how many wait states between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mfmadsl.emulator.sanitizer.wait_states.step import Place, Places, Step

ALL = ("CDNA1", "CDNA2", "CDNA3", "CDNA4")
SINCE_CDNA2 = ("CDNA2", "CDNA3", "CDNA4")
SINCE_CDNA3 = ("CDNA3", "CDNA4")


@dataclass(frozen=True)
class Rule:
    """One row of a table.

    `after` gives what an instruction leaves unready, `before` what another one must find ready,
    operand by operand: the youngest instruction that left a part of an operand unready counts.
    `states` says how many wait states lie between the two at least; it may depend on them and on
    the instructions between, which it gets with the first one, the youngest first. `what` says in
    words what the first one did, and `how` what the second one does. With `across`, the rule holds
    only if such an instruction stands between. `families` are those of the chips.
    """

    what: str
    after: Callable[[Step], Places]
    how: str
    before: Callable[[Step], Iterable[Places]]
    states: int | Callable[[Sequence[Step], Step], int]
    families: tuple[str, ...] = ALL
    across: Callable[[Step], bool] | None = None

    def needed(self, since: Sequence[Step], second: Step) -> int:
        """The wait states between two instructions that meet, of which the first is the last of
        `since`."""
        return self.states if isinstance(self.states, int) else self.states(since, second)


@dataclass(frozen=True)
class Missing:
    """Wait states that are missing before an instruction."""

    rule: Rule
    first: Step
    place: Place
    needed: int
    found: int


def missing(rules: Iterable[Rule], older: Sequence[Step], step: Step) -> list[Missing]:
    """What an instruction lacks behind `older` ones, the youngest first, by each of the rules."""
    found = []
    for rule in rules:
        for operand in rule.before(step):
            if operand and (one := _missing(rule, older, step, operand)):
                found.append(one)
    return found


def _missing(rule: Rule, older: Sequence[Step], step: Step, operand: Places) -> Missing | None:
    between, crossed = 0, rule.across is None
    for number, first in enumerate(older):
        if crossed and (met := rule.after(first) & operand):
            needed = rule.needed(older[: number + 1], step)
            return Missing(rule, first, min(met), needed, between) if between < needed else None
        crossed = crossed or (rule.across is not None and rule.across(first))
        between += first.states
    return None
