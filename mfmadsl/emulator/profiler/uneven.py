"""Workgroups of which some do more than others, on the compute units of a chip."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

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
    mean = counts[working].mean()
    nearest = sorted(working.tolist(), key=lambda group: abs(counts[group] - mean))
    return np.sort(nearest[:count])


def is_uneven(product: GpuProduct, counts: _Numbers) -> bool:
    """Whether of those that do anything some do more, or some dies have more."""
    own = counts[counts > 0]
    of_dies = [np.count_nonzero(counts[die :: product.dies]) for die in range(product.dies)]
    return bool(own.min() != own.max() or max(of_dies) > -(-len(own) // product.dies))


def growth(cycles: tuple[int, int], counts: tuple[float, float]) -> float:
    """By which share of a first workgroup's cycles others take longer that do twice as much.

    It is 1 where all of the time goes into loops, and 0 where none does.
    """
    more = counts[1] / counts[0] - 1
    return min(1.0, max(0.0, (cycles[1] / cycles[0] - 1) / more)) if more > 0 else 1.0


def uneven(
    product: GpuProduct, resident: int, alone: float, relative: npt.NDArray[np.float64]
) -> Uneven:
    """How long workgroups take that go to the dies in turn, and in a die to the next place free.

    `relative` says of each, in the order of the launch, how long it takes beside the mean one, 0 of
    those that do nothing, and `resident` is how many a compute unit holds: a round is what these
    take together. One that is `alone` on its unit is so many times as fast.
    """
    dies = [relative[die :: product.dies] for die in range(product.dies)]
    units = product.units_of_die
    rounds = max(_end(each[each > 0].tolist(), units, resident, alone) for each in dies)
    working = int(np.count_nonzero(relative))
    places = min(resident, -(-working // product.compute_units)) * product.compute_units
    return Uneven(rounds, min(1.0, float(relative.sum()) / (places * rounds)))


def _end(pending: list[float], units: int, resident: int, alone: float) -> float:
    """When the last workgroup of a die ends. Each unit gets one before any gets a second one."""
    queue, lasting = deque(pending), [list[float]() for _ in range(min(units, len(pending)))]
    for place in range(min(len(pending), resident * units)):
        lasting[place % units].append(queue.popleft())

    def speed(active: int) -> float:
        free = (resident - active) / (resident - 1) if resident > 1 else 0.0
        return 1 + max(0.0, alone - 1) * free

    ends = [(min(own) / speed(len(own)), unit) for unit, own in enumerate(lasting)]
    heapify(ends)
    time = 0.0
    while ends:
        time, unit = heappop(ends)
        shortest = min(lasting[unit])
        left = [each - shortest for each in lasting[unit] if each > shortest]
        while queue and len(left) < resident:
            left.append(queue.popleft())
        lasting[unit] = left
        if left:
            heappush(ends, (time + min(left) / speed(len(left)), unit))
    return time
