"""How long a launch takes on a whole chip: rounds of workgroups, memory, and power."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from math import ceil

from mfmadsl.emulator.profiler.timing import Timing
from mfmadsl.emulator.profiler.uneven import Uneven
from mfmadsl.model import Architecture, GpuProduct
from mfmadsl.model.traffic import MemoryTraffic, Path, Sharing, path_of, traffic_of

_BUSY = 0.5
"""A launch that keeps nothing busy for more than this share of its time waits for latencies."""

Simulate = Callable[[int, Path], Timing]
"""The cycles of so many workgroups on one compute unit, with a way to memory."""


@dataclass(frozen=True)
class Work:
    """What a launch is, and what its workgroups do.

    `resident` is how many a compute unit holds at once. `requested` and `stored` are the bytes of
    lines of one workgroup, `footprint` those of all arguments that are read. `flops` are the
    operations of all matrix instructions, and `switching` those of elements that a sparse A stores,
    by type, of which the share `inside` is none of the zeros beyond an edge; and `busy` the cycles
    of each kind of unit of one workgroup, summed over the SIMDs. `idle` are the cycles of a compute
    unit in which its workgroups find that there is nothing to do for them. Where workgroups are
    `uneven` the numbers of one are those of the mean.
    """

    groups: int
    resident: int
    requested: float
    stored: float
    footprint: float
    sharing: Sharing
    flops: float
    switching: Mapping[str, float]
    inside: float
    busy: Mapping[str, float]
    idle: int = 0
    uneven: Uneven | None = None


@dataclass(frozen=True)
class ChipTime:
    """What a product takes for one launch, or for all of some work.

    `clock` is in MHz: the highest, or what the power allows. `shares` says for what limits a launch
    which share of the time it would take by itself, and `limit` names the largest. `rounds` are
    those of workgroups on the compute unit that has most of them.
    """

    product: GpuProduct
    seconds: float
    clock: float
    flops: float
    traffic: MemoryTraffic
    rounds: int
    launches: int
    shares: Mapping[str, float]

    @property
    def cycles(self) -> int:
        """The launch's time in cycles of the clock that it reaches."""
        return round(self.seconds * self.clock * 1e6)

    @property
    def tflops(self) -> float:
        """Multiply-adds of the matrix instructions, also those beyond the edges."""
        return self.flops / self.seconds / 1e12

    @property
    def limit(self) -> str:
        """What keeps it from being faster."""
        name = max(self.shares, key=lambda name: self.shares[name])
        return name if self.shares[name] >= _BUSY else "latency"


def chip_time(product: GpuProduct, chip: Architecture, work: Work, simulate: Simulate) -> ChipTime:
    """The time of one launch.

    Workgroups go to the dies in turn, and within one to its compute units; one that holds several
    gets as many as it can. They start and end together, so that a round takes as long as its
    workgroups do, and the last one may leave compute units idle. Uneven ones follow each other as
    places become free. If the matrix cores would do more than the power allows, the clock falls
    until they do as much; operations on the zeros beyond an edge, and on those that a sparse A does
    not store, switch nothing and take none.
    """
    most = ceil(ceil(work.groups / product.dies) / product.units_of_die)
    full, rest = divmod(most, work.resident)
    busy = work.groups / (product.compute_units * most)
    traffic = traffic_of(
        product, work.requested * work.groups, work.stored * work.groups, work.sharing,
        work.footprint,
    )  # fmt: skip

    units = min(work.groups, product.compute_units)
    path = path_of(product, traffic, work.sharing, units, chip.l2_latency)
    if work.uneven is None:
        cycles = full * simulate(work.resident, path).cycles if full else 0
        cycles += simulate(rest, path).cycles if rest else 0
    else:
        busy = work.uneven.busy
        cycles = round(work.uneven.rounds * simulate(work.resident, path).cycles)
    cycles += work.idle
    moving = {
        "L2": traffic.requested / product.l2_bandwidth / 1e9,
        "MALL": traffic.beyond / product.beyond_l2 / 1e9 if product.mall_bytes else 0.0,
        "HBM": (traffic.memory + traffic.stored) / product.reached_bandwidth / 1e9,
    }
    # What the vector L1s have depends on when waves ask: the way to memory knows an average of it.
    fastest = max(cycles / product.clock / 1e6, *moving.values())
    power = sum(
        work.inside * flops / product.sustained[kind] / 1e12
        for kind, flops in work.switching.items()
        if kind in product.sustained
    )
    seconds = max(fastest, power)
    simds = product.compute_units * chip.simds * product.clock * 1e6
    units_of = {"matrix cores": ("matrix", simds), "vector ALUs": ("valu", simds)}
    units_of |= {"LDS": ("lds", simds / chip.simds), "L1": ("vmem", simds / chip.simds)}
    shares = {
        name: work.busy.get(unit, 0) * work.groups / rate / seconds
        for name, (unit, rate) in units_of.items()
    }
    shares |= {"power": power / seconds}
    shares |= {name: time / seconds for name, time in moving.items()}
    shares |= {"idle compute units": 1 - busy}
    clock = product.clock * fastest / seconds
    return ChipTime(product, seconds, clock, work.flops, traffic, full + bool(rest), 1, shares)


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
    )
