"""What a GEMM with some tiling should take on a whole chip, in a formula.

It is the profiler's model without a kernel: the same caches, bandwidths, rounds and power, but in
place of instructions what a step needs of each unit. A step takes as long as the busiest unit
works for all workgroups of a compute unit, but no less than one workgroup needs by itself: its own
work, its barriers, and until what it has asked for has come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, prod

from mfmadsl.model import SPARSE_GROUP, SPARSE_STORED, Tiling
from mfmadsl.model.energy import cycles_at, energy_of, settled
from mfmadsl.model.traffic import Path, Sharing, path_of, traffic_of
from mfmadsl.passes.main_loop.analysis.register_use import asks_late, sharing_lines
from mfmadsl.schedule.matrix_core.tiling import resources
from mfmadsl.schedule.matrix_core.tiling.adding_up import adding_up
from mfmadsl.schedule.matrix_core.tiling.asking import asked_bytes, bytes_behind, has_few_loads
from mfmadsl.schedule.matrix_core.tiling.computing import is_uneven, turned_bytes, work_of
from mfmadsl.schedule.matrix_core.tiling.floor import matrix_cycles, most_tiles
from mfmadsl.schedule.matrix_core.tiling.gemm_on_chip import GemmOnChip
from mfmadsl.schedule.matrix_core.tiling.occupancy import copied_rows, resident_groups, sets_of

_BARRIER = 48  # cycles of a step in which a workgroup's waves wait for each other
_START = 500  # cycles from a workgroup's start to its first load
_STATISTICS = 1000  # cycles in which a row's statistics are added up
_FILL = 500  # cycles in which the first fragments come, and the last sums go
_AHEAD = 1.15  # steps, of what goes through registers: it leaves them in the middle of a step
_FURTHER = 0.8  # steps more where the loads of two are in flight, as kernels behave
_HALF, _WHOLE = 0.5, 0.9  # steps for which a tile in the LDS is in use: by halves, or all of it
_FOUND = 0.5  # of common lines that others have asked for: of the rest they ask at once
_FIRST_STEPS = 1  # that are asked for before the first is needed
_WAITING = 0.5  # of the cycles in which it computes a wave waits for its own results
_UNEVEN = 0.5  # of the cycles in which it computes, where some threads have more of that
_HELD = 0.6  # of its matrix cycles, in which a workgroup asks for nothing that lacks a line
_TURNING: dict[float, float] = {
    1: 8.0,
    2: 2.5,
    4: 1.0,
}  # cycles a byte and thread of transposing rows, by size


@dataclass(frozen=True)
class Estimate:
    """The seconds from the start of the first launch to the end of the last one, with all the power
    that the chip could take; the bytes that are read; and what computes `seconds`, if the power
    that the chip gets may make it slower."""

    unlimited: float
    read: float
    slowed: Callable[[], float] | None = field(default=None, compare=False)

    @cached_property
    def seconds(self) -> float:
        """The seconds with the power that the chip gets."""
        return self.unlimited if self.slowed is None else self.slowed()


def estimate(gemm: GemmOnChip, tiling: Tiling) -> Estimate:
    """What a GEMM with this tiling should take."""
    terms = _Terms(gemm, tiling)
    after = adding_up(gemm, tiling, terms.tiles, terms.tile_bytes)
    read = terms.requested * terms.fresh
    return Estimate(terms.fastest + after, read, lambda: terms.powered + after)


class _Terms:
    """The terms of one tiling, in cycles of the highest clock and bytes."""

    def __init__(self, gemm: GemmOnChip, tiling: Tiling) -> None:
        self.gemm, self.tiling = gemm, tiling
        product, blocks = gemm.product, gemm.intrinsic.blocks
        self.rows = ceil(gemm.m / tiling.block[0])
        self.columns = ceil(gemm.n / tiling.block[1])
        self.steps = ceil(ceil(gemm.k / tiling.k_step) / tiling.split_k)
        self.layers = ceil(gemm.batches / blocks) * tiling.split_k
        self.tiles = self.rows * self.columns * self.layers
        self.most = most_tiles(gemm, self.tiles)
        self.copied = copied_rows(gemm, tiling)
        room = 1 if tiling.persistent else resident_groups(gemm, tiling, self.copied, self.tiles)
        self.resident = min(self.most, room)
        # On the average, and of a workgroup at no edge.
        self.lines = self._lines((gemm.m / self.rows, gemm.n / self.columns))
        self.fresh = self._fresh()
        self.missing = self._missing()
        self.step_bytes = sum(self.lines) * blocks * self.missing
        whole = min(tiling.block[0], gemm.m), min(tiling.block[1], gemm.n)
        self.whole_bytes = sum(self._lines(whole)) * blocks
        element = gemm.result_bytes if tiling.split_k == 1 else gemm.sum_bytes
        self.lds_traffic = self._lds_traffic()
        self.lds_bytes = sum(self.lds_traffic)
        self.tile_bytes = gemm.m / self.rows * gemm.n / self.columns * blocks * element
        sharing = self._sharing()
        sides = gemm.m, gemm.n
        footprint = sum(sides[each.side] * sum(each.sources) for each in gemm.reads)
        footprint *= gemm.k * gemm.batches
        self.requested = self.step_bytes * self.steps * self.tiles
        self.traffic = traffic_of(
            product, self.requested, self.tile_bytes * self.tiles, sharing, footprint
        )
        self.sharing = sharing
        self.direct = self._is_direct()
        # What is the same at each clock.
        self.matrix = matrix_cycles(gemm, tiling)
        self.work = work_of(gemm, tiling, self.copied)
        self.l1 = (self.whole_bytes + bytes_behind(gemm, tiling)) / gemm.chip.l1_bytes_per_cycle
        few = has_few_loads(gemm, tiling, self.copied, self.steps, self.direct)
        self.asks_late = tiling.stages == 1 and self._asks_late(few)
        self.loads_two = few and not self.asks_late
        # What is computed is asked for first, and the rest late: some is under way all the time.
        self.computes_ahead = bool(self.work) and self.asks_late
        self.exposed = self._exposed()
        self.turning = turned_bytes(gemm, tiling) * _TURNING.get(max(gemm.k_bytes), 0.0)
        self.known: dict[float, float] = {}
        self._look_at(1.0)

    def _look_at(self, share: float) -> None:
        """Find the cycles of the product itself at a share of the highest clock."""
        product, latency = self.gemm.product, self.gemm.chip.l2_latency
        units = min(self.tiles, product.compute_units)
        path = path_of(product, self.traffic, self.sharing, units, latency, share)
        full, rest = divmod(self.most, self.resident)
        cycles = full * self._round(self.resident, path) if full else 0.0
        self.known[share] = cycles + (self._round(rest, path) if rest else 0.0)

    def _seconds(self, share: float) -> float:
        """Seconds of that, by the clocks that have been looked at."""
        return cycles_at(share, self.known) / (self.gemm.product.clock * share) / 1e6

    @property
    def fastest(self) -> float:
        """Seconds of the product itself at the highest clock."""
        return self._seconds(1.0)

    @property
    def powered(self) -> float:
        """Seconds of the product itself at the clock that the power allows; zeros at an edge and of
        a sparse A take next to none."""
        gemm, intrinsic, fastest = self.gemm, self.gemm.intrinsic, self.fastest
        power = gemm.product.power
        if power is None:
            return fastest
        kinds = intrinsic.a.type.short, intrinsic.b.type.short
        kind = max(kinds, key=lambda kind: power.matrix.get(kind, 0.0))
        stored = SPARSE_STORED / SPARSE_GROUP if intrinsic.sparse else 1
        operations = {kind: 2 * gemm.m * gemm.n * gemm.k * stored * gemm.batches}
        moved = self.lds_bytes * self.steps * self.tiles
        energy = energy_of(power, operations, moved, self.traffic)
        # What is behind the L2s keeps no time with the clock.
        return self._seconds(settled(power, energy, self._look_at, self._seconds))

    def _lines(self, rows: Sequence[float]) -> tuple[float, ...]:
        """Bytes of lines that a step asks for, of so many rows of A and columns of B, by read."""
        depth, line = min(self.tiling.k_step, self.gemm.k), self.gemm.chip.line_bytes
        return tuple(each.line_bytes(rows[each.side], depth, line) for each in self.gemm.reads)

    def _fresh(self) -> float:
        """The share of a step's lines that the step before has not asked for: a line may hold what
        several steps read of a row, as short steps and scales of groups do."""
        gemm, depth, line = (
            self.gemm,
            min(self.tiling.k_step, self.gemm.k),
            self.gemm.chip.line_bytes,
        )
        rows = gemm.m / self.rows, gemm.n / self.columns
        whole = sum(each.line_bytes(rows[each.side], gemm.k, line) for each in gemm.reads)
        return min(1.0, whole / (sum(self.lines) * gemm.k / depth))

    def _missing(self) -> float:
        """The share of the lines that the vector L1 cache has not: where all workgroups have the
        same rows of A, or columns of B, those of a compute unit find lines that others asked for,
        if a step of all of them fits."""
        is_common = self.rows == 1, self.columns == 1
        common = own = 0.0
        for read, lines in zip(self.gemm.reads, self.lines, strict=True):
            if is_common[read.side]:
                common += lines
            else:
                own += lines
        if common + self.resident * own > self.gemm.chip.l1_bytes:
            return 1.0
        found = _FOUND * common * (1 - 1 / self.resident)
        return 1 - found / (common + own)

    def _bytes_of(self, rows: Sequence[float]) -> float:
        """Bytes of one k of so many rows of A and columns of B."""
        of_a, of_b = self.gemm.k_bytes
        return rows[0] * of_a + rows[1] * of_b

    def _sharing(self) -> Sharing:
        """What of the tiles that are worked on at once lies in the same rows and columns."""
        product, tiling = self.gemm.product, self.tiling
        at_once = ceil(min(self.tiles / product.dies, product.units_of_die * self.resident))
        layers = max(1, ceil(at_once / (self.rows * self.columns)))
        each = ceil(at_once / layers)
        wide = min(ceil(each / min(tiling.group, self.rows, each)), self.columns)
        high = min(ceil(each / wide), self.rows)  # of few columns several groups of rows
        of_die = layers * self._distinct(high, wide)
        dies = min(product.dies, ceil(self.tiles / at_once))
        all_layers = min(self.layers, dies * layers)
        dies_of_layer = ceil(dies * layers / all_layers)
        rows, columns = (
            min(self.rows, dies_of_layer * high),
            min(self.columns, dies_of_layer * wide),
        )
        of_chip = all_layers * min(
            dies_of_layer * self._distinct(high, wide), self._distinct(rows, columns)
        )
        asked = at_once * sum(self.lines) * self.missing
        of_die, of_chip = of_die * self.fresh, of_chip * self.fresh
        return Sharing(min(1.0, of_die / asked), min(1.0, of_chip / (asked * dies)))

    def _distinct(self, rows: int, columns: int) -> float:
        """Bytes of the lines of a step of so many rows and columns of tiles, each counted once:
        where rows of K lie across the lines, neighbours share lines."""
        gemm, counts = self.gemm, (rows, columns)
        if all(each.together is None for each in gemm.reads):
            sides = zip(gemm.reads, self.lines, strict=True)
            return sum(one * counts[each.side] for each, one in sides)
        whole = self._lines((gemm.m / self.rows * rows, gemm.n / self.columns * columns))
        return sum(
            one * counts[each.side] if each.together is None else all_of_them
            for each, one, all_of_them in zip(gemm.reads, self.lines, whole, strict=True)
        )

    def _round(self, groups: int, path: Path) -> float:
        """Cycles of so many workgroups of one compute unit, for one tile each."""
        gemm, tiling, chip = self.gemm, self.tiling, self.gemm.chip
        matrix, work, l1, direct = self.matrix, self.work, self.l1, self.direct
        lds = self.lds_bytes / chip.lds_bytes_per_cycle
        beyond = self.whole_bytes * self.missing * path.read
        of_all = max(self._on_simds(matrix, groups) + self.exposed, self._computed(work, groups))
        stores = self.tile_bytes * max(1 / chip.l1_bytes_per_cycle, path.written)
        if not tiling.stages:
            return self._past_lds(groups, path, of_all) + groups * stores
        # The vector L1 has lines for so many loads under way, all of which take that long.
        times = self.whole_bytes * self.missing / chip.l1_bytes
        under_way = times * self._latency_of_lines(path)
        # What goes through registers is asked for under an iteration's last products, and under the
        # others by another workgroup, unless some comes late.
        is_held = not direct and not self.computes_ahead
        held = _HELD * self._on_simds(matrix, 1) / groups if is_held else 0.0
        shared = max(of_all, groups * max(lds, l1, beyond), groups * under_way + held)
        if work:  # one workgroup computes, and puts and reads what it has computed, in turn
            least, most = sorted((self._computed(work, groups), groups * lds))
            shared = max(shared, most + least / self._apart(groups))
        # Through registers all is asked for at once, and what finds no line waits for another one.
        coming = path.latency * (1.0 if direct else max(1.0, times)) + max(l1, beyond)
        busy = self._on_simds(matrix, 1) + self.exposed
        busy = max(busy, lds / 2) + _BARRIER / tiling.stages
        waited = self._waited(coming, self._computed(work, 1)) + self.turning
        alone = max(busy, under_way if self.computes_ahead else waited)
        # What is first asked for comes at once, and nobody waits for it again.
        waiting = max(0, self.steps - _FIRST_STEPS)
        ahead = _STATISTICS * gemm.statistics_rows
        ends = _START + ahead + coming + _FILL + groups * (stores + self._shared_sums())
        return ends + (self.steps - waiting) * max(shared, busy) + waiting * max(shared, alone)

    def _asks_late(self, few_loads: bool) -> bool:
        """Whether the kernel asks for a step's last loads in the next one."""
        gemm, tiling, chip = self.gemm, self.tiling, self.gemm.chip
        lds = resources.lds_bytes(tiling, gemm.k_bytes, gemm.intrinsic, self.copied)
        sums = resources.sum_registers(tiling, gemm.intrinsic)
        resident = sharing_lines(chip, lds, sums, tiling.wave_count)
        return asks_late(
            chip, self.lds_traffic[0], resident, self._on_simds(self.matrix, 1),
            few_loads, is_plain=not gemm.made,
        )  # fmt: skip

    @property
    def register_steps(self) -> int:
        """The steps of a wave's fragments in one of the LDS."""
        tiling = self.tiling
        return max(1, tiling.k_step // (tiling.k_pack * self.gemm.intrinsic.k * tiling.k_waves))

    def _exposed(self) -> float:
        """Cycles of a step in which matrix cores wait where a tile has one place in the LDS: under
        the products of the last register step the next tile is put there, and its first fragments
        are read; of the loads those for which the vector L1 has no lines hold up their wave. Loads
        of what is computed come first; of that some threads may have more than others."""
        tiling, chip = self.tiling, self.gemm.chip
        if self.direct or tiling.stages != 1:
            return 0.0
        steps = self.register_steps
        put, read = (each / chip.lds_bytes_per_cycle for each in self.lds_traffic)
        under = self._on_simds(self.matrix, 1) / steps if steps > 1 else 0.0
        lines = chip.l1_bytes / chip.l1_bytes_per_cycle / self.resident
        more = 0.0
        if self.work and is_uneven(self.gemm, tiling, self.copied):
            more = _UNEVEN * self._computed(self.work, 1)
        elif not self.work and not self.loads_two:
            more = max(0.0, self.l1 - lines - under)
        return max(0.0, put + chip.lds_latency + read / steps - under) + more

    def _latency_of_lines(self, path: Path) -> float:
        """Cycles for which a line of the vector L1 waits for what it is to hold: of all a wave
        waits for, that of the last one; where some is under way all the time, the mean."""
        if not self.computes_ahead:
            return path.latency
        near = self.gemm.chip.l2_latency
        return near + self.sharing.die * (path.latency - near)

    def _past_lds(self, groups: int, path: Path, of_all: float) -> float:
        """Cycles of so many workgroups whose fragments come from memory, up to their stores.

        No wave waits for another one: what is loaded comes at the pace of the path or of the lines
        of the vector L1, computing goes on beside it, and that of a last step comes at the end.
        """
        gemm, chip, tiling = self.gemm, self.gemm.chip, self.tiling
        asked = asked_bytes(gemm, tiling) / chip.l1_bytes_per_cycle
        each = max(asked, self.whole_bytes * self.missing * path.read)
        lines = self.whole_bytes * self.missing / chip.l1_bytes
        sets = sets_of(gemm, tiling, self.copied, self.tiles)
        # A wave asks for a step when it has computed the one that is so many sets before, while
        # others of its SIMD do the same at another time.
        waves = max(1.0, tiling.wave_count * groups / chip.simds)
        alone = (path.latency + (each + self._computed(self.work, 1)) / waves) / sets
        step = max(of_all, groups * each, groups * lines * path.latency, alone)
        ends = _START + path.latency + of_all + _FILL + groups * self._shared_sums()
        return ends + self.steps * step

    def _lds_traffic(self) -> tuple[float, float]:
        """Bytes that go into the LDS in a step, and out of it."""
        tiling, blocks = self.tiling, self.gemm.intrinsic.blocks
        if not tiling.stages:
            return 0.0, 0.0
        read = self._bytes_of(tiling.wave_tile) * prod(tiling.waves)
        put = resources.k_step_bytes(tiling, self.gemm.k_bytes, self.copied)
        return put * blocks, read * tiling.k_step * blocks

    def _on_simds(self, cycles: float, groups: int) -> float:
        """Cycles that so many workgroups take for what takes one of them `cycles` on one SIMD."""
        waves = self.tiling.wave_count * groups
        return cycles * groups / min(self.gemm.chip.simds, waves)

    def _computed(self, work: float, groups: int) -> float:
        """Cycles in which so many workgroups compute elements: a wave waits for its own results,
        while others of its SIMD compute."""
        waves = max(1.0, self.tiling.wave_count * self.resident / self.gemm.chip.simds)
        return self._on_simds(work, groups) * (1 + _WAITING / waves)

    def _apart(self, groups: int) -> float:
        """How many parts of so many workgroups compute while the others use the LDS: each of them,
        and where waves along K share a SIMD one more."""
        waves = self.tiling.wave_count * groups / self.gemm.chip.simds
        return max(groups, min(groups + 1, waves)) if self.tiling.k_waves > 1 else groups

    def _shared_sums(self) -> float:
        """Cycles of the LDS in which waves along K leave their sums, and others fetch them."""
        tiling = self.tiling
        if tiling.k_waves == 1:
            return 0.0
        sums = prod(tiling.block) * tiling.k_waves * self.gemm.sum_bytes
        return 2 * sums / self.gemm.chip.lds_bytes_per_cycle

    def _waited(self, coming: float, work: float) -> float:
        """Cycles of a step of one workgroup, whose loads are `coming` in so many before it computes
        elements of them: where those of two steps are in flight, the next ones come meanwhile."""
        if self.loads_two:
            return max(work, (coming + work) / self._ahead())
        return coming / self._ahead() + work

    def _ahead(self) -> float:
        """Steps between asking for a tile and needing it."""
        tiling, gemm = self.tiling, self.gemm
        if not self.direct:
            if self.asks_late:  # under the first register step
                return _AHEAD - _HALF / self.register_steps
            return _AHEAD + (_FURTHER if self.loads_two else 0.0)
        return tiling.stages - (
            _HALF if resources.takes_halves(tiling, gemm.intrinsic, gemm.loads) else _WHOLE
        )

    def _is_direct(self) -> bool:
        """Whether loads go straight into the LDS: an edge of K is cut off in a last step only, and
        parts of K that are not alike may end in one before it."""
        tiling = self.tiling
        beyond = self.steps * tiling.k_step * tiling.split_k - self.gemm.k
        return resources.is_direct(tiling, self.gemm.loads) and beyond <= tiling.k_step
