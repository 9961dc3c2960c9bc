"""Which tilings should take the least time, of those that have been estimated.

What the power of the chip does to a time is most of the work of an estimate, so it is found only
where the time with all power that the chip could take leaves that open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from operator import attrgetter
from typing import TypeAlias

from mfmadsl.model import Tiling
from mfmadsl.schedule.matrix_core.tiling.cost import Estimate

Estimated: TypeAlias = tuple[Estimate, Tiling]

_READS = 1.25  # of the bytes that are read, up to which others are about as many
_SPLIT = 1.06  # of the time with K in parts, up to which it stays whole
_ABOUT = 1.03  # of a time, up to which another one is about the same
_SAME = 1.01  # of a time, up to which the formula cannot tell

MAY_BE_FASTEST = _ABOUT * _SPLIT * _ABOUT
"""Of the least time, up to which a tiling may be what `fastest_of` takes."""


def least_seconds(estimates: Iterable[Estimate]) -> float:
    """The least time of any."""
    least = inf
    for each in sorted(estimates, key=attrgetter("unlimited")):
        if each.unlimited >= least:
            break
        least = min(least, each.seconds)
    return least


def within(found: Sequence[Estimated], share: float) -> list[Estimated]:
    """Those that take at most so many times the least time of any."""
    most = share * least_seconds(each for each, _ in found)
    return [pair for pair in found if pair[0].unlimited <= most and pair[0].seconds <= most]


def fastest_of(found: Sequence[Estimated]) -> Tiling:
    """The tiling that should take the least time.

    Of tilings that are about as fast as the fastest, those that read about the least, with most
    waves along K if these meet in each step, and of these the fastest. Workgroups share K where
    that is clearly faster: the estimate favours it. Fragments come past the LDS where that is
    more than about as fast.
    """
    near = within(found, MAY_BE_FASTEST)
    near = _some(near, [pair for pair in near if pair[1].stages], _ABOUT)
    near = _some(near, [pair for pair in near if pair[1].split_k == 1], _SPLIT)
    near = within(near, _ABOUT)
    most_read = _READS * min(each.read for each, _ in near)
    near = [pair for pair in near if pair[0].read <= most_read]
    # The formula does not know what more waves hide that meet at barriers, but what it costs to add
    # up their sums.
    most = max((tiling.k_waves for _, tiling in near if tiling.stages), default=0)
    near = [pair for pair in near if not pair[1].stages or pair[1].k_waves == most]
    return min(within(near, _SAME), key=lambda pair: (pair[0].read, pair[0].unlimited))[1]


def _some(found: list[Estimated], some: list[Estimated], share: float) -> list[Estimated]:
    """Some of those found, if the fastest of them takes at most so many times the least time."""
    fastest = least_seconds(each for each, _ in some)
    return some if fastest <= share * least_seconds(each for each, _ in found) else found


def fastest_first(found: Sequence[Estimated]) -> list[Tiling]:
    """`fastest_of` some tilings, and the others by the time that they should take."""
    best = fastest_of(found)
    others = sorted((pair for pair in found if pair[1] is not best), key=lambda p: p[0].seconds)
    return [best, *(tiling for _, tiling in others)]
