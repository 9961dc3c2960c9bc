"""Which tilings a product of a symbolic extent gets, and for which extents each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import inf
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mfmadsl.model import Tiling
from mfmadsl.schedule.matrix_core.tiling.cost import Estimate
from mfmadsl.schedule.matrix_core.tiling.fastest import (
    MAY_BE_FASTEST,
    Estimated,
    fastest_of,
    within,
)

MOST = 10
"""Cases: of more, compiling takes too long."""

_CLOSE = 1.03  # of the best tiling's time, up to which another one is as fast
_SAME = 1.01  # of a time, up to which the estimate cannot tell
_ENOUGH = 1.04  # of what all tilings together lose at an extent, with which cases are content
_FAR = 1.25  # of the best tiling's time, from which on a tiling is not looked at between extents
_IDLE = 1.15  # times as long a tiling is taken to need where more waves along K need no longer
_KEPT = 1.05  # of the best tiling's time, up to which a tiling is a candidate for others as well
_CANDIDATES = 6  # of each extent looked at
_LARGEST = 16384
_LOOKED_AT = tuple(1 << n for n in range(_LARGEST.bit_length()))  # with all tilings
_OFFERING = (1, *_LOOKED_AT[4:], 288, 608, 1536, 3072, 6144)
"""Extents whose tilings are candidates: below 16 they are the same."""

MAY_BE_CASE = _KEPT * MAY_BE_FASTEST * MAY_BE_FASTEST
"""Of the least time, up to which a tiling may be that of a case."""

_STEPS = (16, 128), (32, 1024), (64, 8192), (128, _LARGEST)
"""Of the borders up to some extent: as many rows as tiles have, or a part of them, so that an
extent has as many tiles as its border."""

BORDERS = (1, 2, 4, 8, *(e for (_, a), (step, b) in pairwise([(0, 0), *_STEPS])
                         for e in range(a + step, b + 1, step)))  # fmt: skip
"""The extents that a case may be taken up to."""


@dataclass(frozen=True)
class Case:
    """A tiling, and extents that are each the largest of some that it is taken for: those begin
    after the next smaller one that any case has. The last case takes what is larger than all, too.
    """

    tiling: Tiling
    up_to: tuple[int, ...] = ()


Losses: TypeAlias = npt.NDArray[np.float64]


def cases_of(
    estimated: Callable[[int], Sequence[Estimated]],
    of_one: Callable[[int, Tiling], Estimate],
    tuned: Mapping[int, Tiling],
) -> list[Case]:
    """The cases that should be the fastest over all extents, the last for the largest.

    `estimated` gives the tilings for an extent, `of_one` the time of any, and `tuned` are those
    that were measured for some of `BORDERS`: there no other one is taken.

    There are as few cases as come close to what all tilings would lose everywhere, and at most
    `MOST` beside those tuned; of as many those are taken whose worst extent loses the least.
    """
    found = [tiling for extent in _OFFERING for tiling in _candidates(estimated(extent))]
    tilings = list(dict.fromkeys([*tuned.values(), *found]))
    losses, times = _losses_at_borders(tilings, of_one, tuned)
    chosen = _cover(losses, len(set(tuned.values())))
    best = _best(losses, times, chosen)
    ends: dict[int, list[int]] = {}
    for place, run in groupby(zip(BORDERS, best, strict=True), key=lambda each: each[1]):
        ends.setdefault(place, []).append([border for border, _ in run][-1])
    last = best[-1]
    ends[last].pop()
    order = sorted(ends, key=lambda place: (place == last, ends[place]))
    return [Case(tilings[place], tuple(ends[place])) for place in order]


def _candidates(found: Sequence[Estimated]) -> list[Tiling]:
    """The fastest tiling, and others about as fast: of each size of tiles the best one."""
    near = within(found, MAY_BE_CASE)
    by_size: dict[tuple[object, ...], list[Estimated]] = {}
    for each, tiling in near:
        by_size.setdefault(_size(tiling), []).append((each, tiling))
    seconds = {tiling: each.seconds for each, tiling in near}
    best = fastest_of(near)
    others = sorted(map(fastest_of, by_size.values()), key=lambda tiling: seconds[tiling])
    close = [tiling for tiling in others if seconds[tiling] <= _KEPT * seconds[best]]
    return list(dict.fromkeys([best, *close[:_CANDIDATES]]))


def _size(tiling: Tiling) -> tuple[object, ...]:
    return *_tile(tiling), tiling.instruction


def _tile(tiling: Tiling) -> tuple[object, ...]:
    return tiling.block, tiling.k_step, tiling.split_k


def _losses_at_borders(
    tilings: Sequence[Tiling], of_one: Callable[[int, Tiling], Estimate],
    tuned: Mapping[int, Tiling],
) -> tuple[list[list[float]], list[list[float]]]:  # fmt: skip
    """What each tiling loses up to each border, as a multiple of the least that any loses there;
    and how many times the best one's time it takes at most."""
    tiles, k_waves = list(map(_tile, tilings)), [each.k_waves for each in tilings]
    every = range(len(tilings))
    more_waves = [
        [e for e in every if tiles[e] == tile and k_waves[e] > own]
        for tile, own in zip(tiles, k_waves, strict=True)
    ]

    def times(extent: int, places: Sequence[int]) -> dict[int, float]:
        """How many times the best one's time each of these takes."""
        found = {place: of_one(extent, tilings[place]).seconds for place in places}
        least = min(found.values())
        return {place: time / least for place, time in found.items()}

    known = {extent: times(extent, every) for extent in _LOOKED_AT}
    losses, every_time = [], []
    for border in BORDERS:
        if border not in known:
            below, above = (known[each] for each in _around(border))
            nearest = [min(below[each], above[each]) for each in every]
            near = times(border, [each for each in every if nearest[each] <= _FAR])
            known[border] = {e: near.get(e, nearest[e]) for e in every}
        measured = tilings.index(tuned[border]) if border in tuned else None
        here = _losses(known[border], more_waves, measured)
        losses.append([each / min(here) for each in here])
        every_time.append(list(known[border].values()))
    return losses, every_time


def _best(
    losses: Sequence[Sequence[float]], times: Sequence[Sequence[float]], chosen: Sequence[int]
) -> list[int]:
    """Which of the chosen tilings each border gets: of those that lose the least the fastest one,
    and the one of the next border where that is about as fast."""
    found: list[int] = []
    for loss, time in zip(reversed(losses), reversed(times), strict=True):
        least = min(loss[place] for place in chosen)
        alike = [place for place in chosen if loss[place] <= least]
        fastest = min(alike, key=lambda place: time[place])
        following = found[-1] if found and found[-1] in alike else fastest
        found.append(following if time[following] <= _SAME * time[fastest] else fastest)
    return found[::-1]


def _around(extent: int) -> tuple[int, int]:
    """The extents looked at that are next to one between them."""
    above = next(each for each in _LOOKED_AT if each >= extent)
    return max(1, above // 2), above


def _losses(
    times: Mapping[int, float], more_waves: Sequence[Sequence[int]], measured: int | None
) -> list[float]:
    """How many times the best one's time each tiling takes; of those about as fast the same.

    `times` are those of the tilings by their places, and `more_waves` has for each the places of
    the others of its size with more waves along K. Where one was `measured`, no other is taken.
    """
    if measured is not None:
        return [1.0 if place == measured else inf for place in times]
    found = []
    for place, time in times.items():
        idle = any(times[each] <= _CLOSE * time for each in more_waves[place])
        found.append(max(_CLOSE, time) * (_IDLE if idle else 1))
    return found


def _cover(losses: Sequence[Sequence[float]], tuned: int) -> list[int]:
    """The tilings of the cases, by their places: the first ones are `tuned`, and taken.

    One after another is added, and then exchanged for others, as long as that makes the worst loss
    smaller, or all of them together.
    """
    table, chosen = np.asarray(losses), list(range(tuned))
    for _ in range(MOST):
        if chosen and table[:, chosen].min(axis=1).max() <= _ENOUGH:
            break
        found = _with_each(table, chosen)
        chosen.append(min(range(len(found)), key=found.__getitem__))
        while (better := _exchanged(chosen, tuned, table)) is not None:
            chosen = better
    return list(dict.fromkeys(chosen))


def _with_each(table: Losses, chosen: Sequence[int]) -> list[tuple[float, float]]:
    """The worst loss and the sum of all, with each tiling beside those chosen."""
    least = table[:, list(chosen)].min(axis=1, initial=inf)
    found = np.minimum(table, least[:, None])
    return list(zip(found.max(axis=0).tolist(), found.sum(axis=0).tolist(), strict=True))


def _exchanged(chosen: Sequence[int], tuned: int, table: Losses) -> list[int] | None:
    """One tiling exchanged for another one, if that loses less."""
    now = _with_each(table, chosen[:-1])[chosen[-1]]
    for own in range(tuned, len(chosen)):
        others = [*chosen[:own], *chosen[own + 1 :]]
        for place, loss in enumerate(_with_each(table, others)):
            if loss < now:
                return [*chosen[:own], place, *chosen[own + 1 :]]
    return None
