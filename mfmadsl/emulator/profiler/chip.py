"""How long a launch takes on a whole chip: rounds of workgroups, memory, and power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

from mfmadsl.emulator.profiler.launch_time import LaunchTime, Simulate, Work
from mfmadsl.error import MfmadslError
from mfmadsl.model import Architecture, GpuProduct
from mfmadsl.model.energy import settled
from mfmadsl.model.traffic import MemoryTraffic

_ROUNDING = 0.05
"""Times are whole cycles, and of rounds those that were looked at count for others."""

_BUSY = 0.5
"""A launch that keeps nothing busy for more than this share of its time waits for latencies."""


class ModelError(MfmadslError):
    """The model says what cannot be: a fault of mfmadsl."""


@dataclass(frozen=True)
class ChipTime:
    """What a product takes for one launch, or for all of some work.

    `clock` is in MHz: the highest, or what the power allows. `shares` says for what limits a launch
    which share of the time it would take by itself, and `limit` names the largest; of `power` it is
    the part of what the board may draw beside its idle power. `rounds` are those of workgroups on
    the compute unit that has most of them. `flops` are the operations of the matrix instructions,
    `useful` those of them that are not seen to lie beyond an edge.
    """

    product: GpuProduct
    seconds: float
    clock: float
    flops: float
    traffic: MemoryTraffic
    rounds: int
    launches: int
    shares: Mapping[str, float]
    useful: float

    @property
    def cycles(self) -> int:
        """The launch's time in cycles of the clock that it reaches."""
        return round(self.seconds * self.clock * 1e6)

    @property
    def tflops(self) -> float:
        """Multiply-adds of the matrix instructions, also those beyond the edges."""
        return self.flops / self.seconds / 1e12

    @property
    def useful_tflops(self) -> float:
        """Multiply-adds of elements of the matrices."""
        return self.useful / self.seconds / 1e12

    @property
    def end_to_end(self) -> float:
        """Seconds with the cost of the first launch, which a host sees that waits for the end."""
        return self.seconds + self.product.launch / 1e9

    @property
    def limit(self) -> str:
        """What keeps it from being faster. Power does where it keeps the clock down."""
        free = self.clock >= self.product.clock
        shares = {name: x for name, x in self.shares.items() if not (free and name == "power")}
        name = max(shares, key=lambda name: shares[name])
        return name if shares[name] >= _BUSY else "latency"


def chip_time(product: GpuProduct, chip: Architecture, work: Work, simulate: Simulate) -> ChipTime:
    """The time of one launch.

    Workgroups go to the dies in turn, and within one to its compute units; one that holds several
    gets as many as it can. They start and end together, so that a round takes as long as its
    workgroups do, and the last one may leave compute units idle. Uneven ones follow each other as
    places become free. The clock is the highest at which the work draws what the board may draw:
    compute units and L2s keep time with it, what is behind them does not. Operations on the zeros
    beyond an edge, and on those that a sparse A does not store, switch nothing and take no energy.

    Raises ModelError where the model contradicts itself: where it has more done than a unit can.
    """
    launch = LaunchTime(product, chip, work, simulate)
    power, energy, seconds = product.power, launch.energy, launch.seconds
    # At each clock it is known what of the time goes with it, and what does not.
    share = 1.0 if power is None else settled(power, energy, launch.look_at, seconds)
    took, rate = seconds(share), product.clock * share * 1e6
    shares = {name: cycles / rate / took for name, cycles in launch.needed.items()}
    if power is not None:
        shares |= {"power": energy.at(share) / took / (power.watts - power.idle)}
    shares |= {name: time / took for name, time in launch.moving(share).items()}
    shares |= {"idle compute units": 1 - launch.busy}
    for name, part in shares.items():
        if part > 1 + _ROUNDING:
            raise ModelError(
                f"the model of {product.name} is wrong: {name} at {part:.0%} of a peak"
            )
    return ChipTime(
        product, took, product.clock * share, work.flops, launch.traffic, launch.rounds, 1, shares,
        work.flops * work.inside,
    )  # fmt: skip


def together(times: Sequence[ChipTime]) -> ChipTime:
    """The time of launches that follow each other, each when the one before it has ended."""
    product, gaps = times[0].product, (len(times) - 1) * times[0].product.launch / 1e9
    seconds = sum(time.seconds for time in times) + gaps
    names = dict.fromkeys(name for time in times for name in time.shares)
    shares = {
        name: sum(time.shares[name] * time.seconds for time in times) / seconds for name in names
    }
    return ChipTime(
        product,
        seconds,
        sum(time.clock * time.seconds for time in times) / (seconds - gaps),
        sum(time.flops for time in times),
        MemoryTraffic(
            *(sum(parts) for parts in zip(*(astuple(t.traffic) for t in times), strict=True))
        ),
        sum(time.rounds for time in times),
        len(times),
        {**shares, "launches": gaps / seconds},
        sum(time.useful for time in times),
    )
