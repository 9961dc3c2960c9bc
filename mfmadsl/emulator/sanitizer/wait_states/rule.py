"""A rule: after which instruction, before which one, and how many wait states between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mfmadsl.emulator.sanitizer.wait_states.step import Place, Places, Step

ALL = ("CDNA1", "CDNA2", "CDNA3", "CDNA4")
SINCE_CDNA2 = ("CDNA2", "CDNA3", "CDNA4")
SINCE_CDNA3 = ("CDNA3", "CDNA4")


@dataclass(frozen=True, eq=False)
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
class Ruled:
    """A step by the rules: for each that says something of it, what it leaves unready and what it
    must find ready."""

    step: Step
    leaves: Mapping[Rule, Places]
    takes: tuple[tuple[Rule, Places], ...]


def ruled(rules: Iterable[Rule], step: Step) -> Ruled:
    """A step as the rules see it."""
    rules = tuple(rules)
    leaves = {rule: left for rule in rules if (left := rule.after(step))}
    takes = [(rule, operand) for rule in rules for operand in rule.before(step) if operand]
    return Ruled(step, leaves, tuple(takes))


@dataclass(frozen=True)
class Missing:
    """Wait states that are missing before an instruction."""

    rule: Rule
    first: Step
    place: Place
    needed: int
    found: int


def missing(older: Sequence[Ruled], last: Ruled) -> list[Missing]:
    """What an instruction lacks behind `older` ones, the youngest first."""
    left: dict[Rule, list[int]] = {rule: [] for rule, _ in last.takes}
    for number, each in enumerate(older):
        for rule in each.leaves.keys() & left:
            left[rule].append(number)
    found = (
        _missing(rule, older, left[rule], last.step, operand)
        for rule, operand in last.takes
        if left[rule]
    )
    return [each for each in found if each is not None]


def _missing(
    rule: Rule, older: Sequence[Ruled], numbers: Iterable[int], step: Step, operand: Places
) -> Missing | None:
    """What an operand lacks behind those of older instructions that the rule knows."""
    for number in numbers:
        first, since = older[number], [each.step for each in older[: number + 1]]
        met = first.leaves[rule] & operand
        if met and (rule.across is None or any(map(rule.across, since[:-1]))):
            between = sum(each.states for each in since[:-1])
            needed = rule.needed(since, step)
            if between >= needed:
                return None
            return Missing(rule, first.step, min(met), needed, between)
    return None
