"""What work draws, and the clock at which that is what a product may draw."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mfmadsl.model.power import Power
from mfmadsl.model.traffic import MemoryTraffic

RISE = 1.6
"""The power of the clock with which the energy of an operation of the compute dies grows, as the
square of the voltage does, which follows the clock. Found from a kernel that keeps the matrix cores
of an MI355X half busy (docs/chip.md); AMD's figures of an MI300X and an MI325X, which differ by
what their boards may draw, agree with anything from 1 to 2.
"""

_NEAR = 0.98  # of a clock, down to which its cycles tell those of another one
_EXACT = 1e-7  # of the watts
_STEPS = 40  # at most: some eight are enough


@dataclass(frozen=True)
class Energy:
    """Joules of some work: `core`, at the highest clock, of the compute dies, and `far` of the
    memory behind them, at any clock."""

    core: float
    far: float

    def at(self, share: float) -> float:
        """Joules at this share of the highest clock."""
        return float(self.core * share**RISE + self.far)


def energy_of(
    power: Power, operations: Mapping[str, float], lds_bytes: float, traffic: MemoryTraffic
) -> Energy:
    """What work draws: operations of the matrix cores by type, the bytes that go into the LDS and
    out of it, and the traffic."""
    core = sum(count * power.matrix.get(kind, 0.0) for kind, count in operations.items())
    core += lds_bytes * power.lds + (traffic.requested + traffic.stored) * power.l2
    far = (traffic.beyond + traffic.stored) * power.beyond
    far += (traffic.memory + traffic.stored) * power.memory
    return Energy(core / 1e12, far / 1e12)


def cycles_at(share: float, known: Mapping[float, float]) -> float:
    """The cycles of some work at a share of the highest clock, where those at some shares are
    known, the highest among them: on the line between two, or through the lowest two.

    A slower clock takes no less time, in no more cycles. So where two clocks hardly differ, and
    their cycles by chance, the line through them leads nowhere.
    """
    clocks = sorted(known)
    place = bisect_left(clocks, share)
    above, others = clocks[place], clocks[place - 1 : place] or clocks[place + 1 :]
    if not others:
        return known[above]
    other = others[0]
    slope = (known[above] - known[other]) / (above - other)
    line = known[above] + slope * (share - above)
    return max(min(line, known[above]), known[above] * share / above)


def share_of_clock(power: Power, energy: Energy, seconds: Callable[[float], float]) -> float:
    """The largest share of the highest clock at which the work draws no more than it may.

    `seconds` says how long the work takes at some share; less of it takes no less time.
    """
    allowed = power.watts - power.idle

    def draws(share: float) -> float:
        return energy.at(share) / seconds(share)

    over, spare = draws(1.0) - allowed, allowed
    if over <= 0:
        return 1.0
    # By the line between two shares of which the higher one draws too much; the end that stays a
    # second time counts half, lest the other one creep (the Illinois method).
    low, high, middle = 0.0, 1.0, 1.0
    for _ in range(_STEPS):
        last, middle = middle, (low * over + high * spare) / (over + spare)
        excess = draws(middle) - allowed
        if abs(excess) <= _EXACT * allowed:
            break
        if excess > 0:
            spare = spare / 2 if last == high else spare
            high, over = middle, excess
        else:
            over = over / 2 if last == low else over
            low, spare = middle, -excess
    return middle


def settled(
    power: Power, energy: Energy, look_at: Callable[[float], None],
    seconds: Callable[[float], float],
) -> float:  # fmt: skip
    """The largest share of the highest clock at which work draws no more than it may, where what it
    does is known at the highest clock only.

    `seconds` says how long it takes at some share, by what is known so far; `look_at` makes known
    what it does at a share.
    """
    share = share_of_clock(power, energy, lambda share: seconds(1.0) / share)
    lowest = 1.0
    while share < lowest * _NEAR:
        lowest = share
        look_at(lowest)
        share = share_of_clock(power, energy, seconds)
    return share
