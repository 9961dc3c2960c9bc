"""What a product draws while it works, and the clock at which that is what it may draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mfmadsl.model.traffic import MemoryTraffic

RISE = 1.6
"""The power of the clock with which the energy of an operation of the compute dies grows, as the
square of the voltage does, which follows the clock. Found from a kernel that keeps the matrix cores
of an MI355X half busy (docs/chip.md); AMD's figures of an MI300X and an MI325X, which differ by
what their boards may draw, agree with anything from 1 to 2.
"""

_STEPS = 40  # of halving, which leave nothing of any clock


@dataclass(frozen=True)
class Power:
    """Watts, and picojoules of an operation or a byte at the highest clock.

    The letters in brackets are the sources of `GpuProduct`.

    - `watts`: what the board may draw (I).
    - `idle`: what it draws without work (S).
    - `matrix`: of an operation of the matrix cores, by the wider type of A and B (S).
    - `lds`: of a byte that goes into the LDS or out of it (R: a small SRAM, and 2 mm).
    - `l2`: of a byte from an L2 to a compute unit, or back (R: a small SRAM, and 10 mm).
    - `beyond`: of a byte from the other dies (R: 20 mm), at any clock.
    - `memory`: of a byte of HBM (T), at any clock.
    """

    watts: float
    idle: float
    matrix: Mapping[str, float]
    lds: float
    l2: float
    beyond: float
    memory: float


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
