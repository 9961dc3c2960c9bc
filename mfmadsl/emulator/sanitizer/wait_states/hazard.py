"""A hazard: after which instruction, before which one, and how many wait states between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mfmadsl.emulator.sanitizer.wait_states.issued import Issued, Place, Places

ALL = ("CDNA1", "CDNA2", "CDNA3", "CDNA4")
SINCE_CDNA2 = ("CDNA2", "CDNA3", "CDNA4")
SINCE_CDNA3 = ("CDNA3", "CDNA4")


@dataclass(frozen=True, eq=False)
class Hazard:
    """One row of a table.

    `after` gives what an instruction leaves unready, `before` what another one must find ready,
    operand by operand: the youngest instruction that left a part of an operand unready counts.
    `states` says how many wait states lie between the two at least; it may depend on them and on
    the instructions between, which it gets with the first one, the youngest first. `what` says in
    words what the first one did, and `how` what the second one does. With `across`, such an
    instruction must stand between, too. `families` are those of the chips.
    """

    what: str
    after: Callable[[Issued], Places]
    how: str
    before: Callable[[Issued], Iterable[Places]]
    states: int | Callable[[Sequence[Issued], Issued], int]
    families: tuple[str, ...] = ALL
    across: Callable[[Issued], bool] | None = None

    def needed(self, since: Sequence[Issued], second: Issued) -> int:
        """The wait states between two instructions that meet, of which the first is the last of
        `since`."""
        return self.states if isinstance(self.states, int) else self.states(since, second)


@dataclass(frozen=True)
class Judged:
    """An instruction with its part in hazards: what it leaves unready, and must find ready."""

    step: Issued
    leaves: Mapping[Hazard, Places]
    takes: tuple[tuple[Hazard, Places], ...]


def judged(hazards: Iterable[Hazard], step: Issued) -> Judged:
    """What an instruction has to do with hazards."""
    hazards = tuple(hazards)
    leaves = {hazard: left for hazard in hazards if (left := hazard.after(step))}
    takes = [(hazard, operand) for hazard in hazards for operand in hazard.before(step) if operand]
    return Judged(step, leaves, tuple(takes))


@dataclass(frozen=True)
class Missing:
    """Wait states that are missing before an instruction."""

    hazard: Hazard
    first: Issued
    place: Place
    needed: int
    found: int


def missing(older: Sequence[Judged], last: Judged) -> list[Missing]:
    """What an instruction lacks behind `older` ones, the youngest first."""
    left: dict[Hazard, list[int]] = {hazard: [] for hazard, _ in last.takes}
    for number, each in enumerate(older):
        for hazard in each.leaves.keys() & left:
            left[hazard].append(number)
    found = (
        _missing(hazard, older, left[hazard], last.step, operand)
        for hazard, operand in last.takes
        if left[hazard]
    )
    return [each for each in found if each is not None]


def _missing(
    hazard: Hazard,
    older: Sequence[Judged],
    numbers: Iterable[int],
    step: Issued,
    operand: Places,
) -> Missing | None:
    """What an operand lacks behind the older instructions that have to do with the hazard."""
    for number in numbers:
        first, since = older[number], [each.step for each in older[: number + 1]]
        met = first.leaves[hazard] & operand
        if met and (hazard.across is None or any(map(hazard.across, since[:-1]))):
            between = sum(each.states for each in since[:-1])
            needed = hazard.needed(since, step)
            if between >= needed:
                return None
            return Missing(hazard, first.step, min(met), needed, between)
    return None
