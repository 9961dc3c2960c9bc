"""What work draws, and the clock at which that is what a product may draw."""

from __future__ import annotations

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

_STEPS = 40  # of halving, which leave nothing of any clock


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


def cycles_at(share: float, whole: float, other: tuple[float, float] | None) -> float:
    """The cycles of some work at a share of the highest clock, at which it takes the `whole`: on
    the line to those of an`other` share (share, cycles), if they are known.

    A slower clock takes no less time, in no more cycles. So where two clocks hardly differ, and
    their cycles by chance, the line between them leads nowhere.
    """
    if other is None:
        return whole
    low, first = other
    line = first + (whole - first) * (share - low) / (1 - low)
    return max(min(line, whole), whole * share)


def share_of_clock(power: Power, energy: Energy, seconds: Callable[[float], float]) -> float:
    """The largest share of the highest clock at which the work draws no more than it may.

    `seconds` says how long the work takes at some share; less of it takes no less time.
    """
    allowed = power.watts - power.idle

    def draws(share: float) -> float:
        return energy.at(share) / seconds(share)

    if draws(1.0) <= allowed:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if draws(middle) <= allowed else (low, middle)
    return high
