"""Workgroups of which some do more than others, on the compute units of a chip."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heapreplace

import numpy as np
import numpy.typing as npt

from mfmadsl.model import GpuProduct

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Uneven:
    """What a launch takes in `rounds` of its mean workgroup, and which share of that compute units
    are busy."""

    rounds: float
    busy: float


def mean_groups(counts: _Numbers, working: _Numbers, count: int) -> _Numbers:
    """So many of the workgroups whose matrix instructions are nearest to the mean, in order."""
    own = counts[working]
    nearest = np.argsort(np.abs(own - own.mean()), kind="stable")
    return np.sort(working[nearest[:count]])


def growth(cycles: tuple[int, int], counts: tuple[float, float]) -> float:
    """By which share of a first workgroup's cycles others take longer that do twice as much.

    It is 1 where all of the time goes into loops, and 0 where none does.
    """
    more = counts[1] / counts[0] - 1
    return min(1.0, max(0.0, (cycles[1] / cycles[0] - 1) / more)) if more > 0 else 1.0


def uneven(product: GpuProduct, resident: int, relative: npt.NDArray[np.float64]) -> Uneven:
    """How long workgroups take that go to the dies in turn, and in a die to the first place free.

    `relative` says of each, in the order of the launch, how long it takes beside the mean one, and
    `resident` is how many a compute unit holds: a round is what these take together.
    """
    ends, places = [], product.units_of_die * resident
    for die in range(product.dies):
        free = [0.0] * places
        heapify(free)
        for each in relative[die :: product.dies].tolist():
            heapreplace(free, free[0] + each)
        ends.append(max(free))
    rounds = max(ends)
    return Uneven(rounds, float(relative.sum()) / (product.dies * places * rounds))
