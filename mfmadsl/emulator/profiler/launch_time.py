"""What a launch takes at some clock: rounds of workgroups, the bytes that they move, and energy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil

from mfmadsl.emulator.profiler.timing import Timing
from mfmadsl.emulator.profiler.uneven import Uneven
from mfmadsl.model import Architecture, GpuProduct
from mfmadsl.model.energy import Energy, cycles_at, energy_of
from mfmadsl.model.traffic import Path, Sharing, path_of, traffic_of

Simulate = Callable[[int, Path], Timing]
"""The cycles of so many workgroups on one compute unit, with a way to memory."""


_UNITS = {
    "matrix cores": ("matrix", True),
    "vector ALUs": ("valu", True),
    "LDS": ("lds", False),
    "L1": ("vmem", False),
}
"""What a compute unit has, what the cycle model calls it, and whether each SIMD has its own."""


@dataclass(frozen=True)
class Work:
    """What a launch is, and what its workgroups do.

    `resident` is how many a compute unit holds at once. `requested` and `stored` are the bytes of
    lines of one workgroup, `footprint` those of all arguments that are read. `flops` are the
    operations of all matrix instructions, and `switching` those of elements that a sparse A stores,
    by type, of which the share `inside` is none of the zeros beyond an edge; and `busy` the cycles
    of each kind of unit of one workgroup, summed over the SIMDs. `lds` are the bytes that go into
    the LDS and out of it, of one workgroup. `idle` are the cycles of a compute unit in which its
    workgroups find that there is nothing to do for them. Where workgroups are `uneven` the numbers
    of one are those of the mean. Caches are `warm` where a launch before has read the same.
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
    lds: float = 0.0
    idle: int = 0
    uneven: Uneven | None = None
    warm: bool = False


class LaunchTime:
    """A launch on a product, at any share of its highest clock.

    Its workgroups are looked at in the model at the highest clock, and at others that `look_at` is
    asked for; the cycles at clocks between lie on a line.
    """

    def __init__(
        self, product: GpuProduct, chip: Architecture, work: Work, simulate: Simulate
    ) -> None:
        self.product, self._chip, self._work, self._simulate = product, chip, work, simulate
        self.traffic = traffic_of(
            product, work.requested * work.groups, work.stored * work.groups, work.sharing,
            work.footprint, work.warm,
        )  # fmt: skip
        most = ceil(ceil(work.groups / product.dies) / product.units_of_die)
        self._full, self._rest = divmod(most, work.resident)
        uneven = work.uneven
        self.rounds = self._full + bool(self._rest)
        self.busy = work.groups / (product.compute_units * most) if uneven is None else uneven.busy
        self._cycles: dict[float, float] = {}
        self.look_at(1.0)

    def look_at(self, share: float) -> None:
        """Go through its workgroups in the model, at a share of the highest clock."""
        product, work = self.product, self._work
        units = min(work.groups, product.compute_units)
        latency = self._chip.l2_latency
        path = path_of(product, self.traffic, work.sharing, units, latency, share)
        if work.uneven is not None:
            cycles = round(work.uneven.rounds * self._simulate(work.resident, path).cycles)
        else:
            cycles = self._full * self._simulate(work.resident, path).cycles if self._full else 0
            cycles += self._simulate(self._rest, path).cycles if self._rest else 0
        self._cycles[share] = cycles + work.idle

    def seconds(self, share: float) -> float:
        """How long it takes, at a share of the highest clock.

        What the vector L1s have depends on when waves ask; the way to memory knows an average of
        it. So a launch takes at least the time that its bytes need on each path.
        """
        cycles = self._cycles_at(share)
        return max(cycles / (self.product.clock * share) / 1e6, *self.moving(share).values())

    def _cycles_at(self, share: float) -> float:
        cycles = cycles_at(share, self._cycles)
        # Between two clocks a line leads below what units need.
        return cycles if len(self._cycles) == 1 else max(cycles, *self.needed.values())

    @property
    def needed(self) -> Mapping[str, float]:
        """The cycles that each kind of unit is busy, whatever the clock."""
        busy, groups, units = self._work.busy, self._work.groups, self.product.compute_units
        return {
            name: busy.get(unit, 0) * groups / units / (self._chip.simds if own else 1)
            for name, (unit, own) in _UNITS.items()
        }

    def moving(self, share: float) -> Mapping[str, float]:
        """The seconds that its bytes need on each path, at a share of the highest clock."""
        traffic, product = self.traffic, self.product
        return {
            "L2": traffic.requested / product.l2_peak / share / 1e9,
            "MALL": traffic.beyond / product.beyond_l2 / 1e9 if product.mall_bytes else 0.0,
            "HBM": (traffic.memory + traffic.stored) / product.reached_bandwidth / 1e9,
        }

    @property
    def energy(self) -> Energy:
        """What it draws; nothing on a product of which nobody has measured it."""
        power, work = self.product.power, self._work
        if power is None:
            return Energy(0.0, 0.0)
        operations = {kind: work.inside * count for kind, count in work.switching.items()}
        return energy_of(power, operations, work.lds * work.groups, self.traffic)
