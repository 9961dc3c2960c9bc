"""How a product is cut for a CPU: register tiles, panels, and the chunks that threads compute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd

from mfmadsl.argument import check_flag, check_integer, check_type
from mfmadsl.host.caches import Caches
from mfmadsl.model import Microkernel
from mfmadsl.schedule.error import ScheduleError

_LATENCY = 8
"""Cycles of a step along k at least: a sum waits four for the one before, and two run at once."""

_TILE = 40
"""Cycles that a tile costs besides its sums and its stores: loops, and the first loads."""

_FULL, _MOVED = 31, 1.2
"""From how many of AVX-512's 32 vector registers on LLVM moves sums around in each step, where what
an edge needs takes another one; and how many times longer steps take then."""

_OUT = 3
"""How many times longer a vector takes into a panel, where panels do not fit the second cache."""

_TURN = 6
"""Cycles that bring one vector of an A that lies by columns, or is computed, into rows."""

_NEAR = 0.3
"""What a vector takes from the second cache, as a part of what it takes from the third one."""

_LOAD, _LOAD_IN = 0.5, 2.0
"""Cycles that a vector of A takes beside the sums, from the second cache, and from further away."""

_CHUNKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Columns of tiles of a chunk that are tried, besides shares of all of them."""

_START = 20_000
"""Cycles of one thread below which no others are woken: that takes microseconds."""

_PAGE = 4096
"""Bytes after which the sets of a first cache come again: it has a way for each of its pages."""


@dataclass(frozen=True)
class CpuTiling:
    """One register tile is that of `microkernel`, by its name.

    A chunk is `rows` x `columns` such tiles of C, computed by one thread. Its part of B is packed
    first, into a panel for each column of tiles. Rows of A are read as they lie, but where they go
    past the edge, are computed, or do not lie along k: those are packed, a row of tiles at a time.
    `pack_a` packs all of them. With `parallel`, threads share the chunks.
    """

    microkernel: str
    rows: int
    columns: int
    parallel: bool = True
    pack_a: bool = False


@dataclass(frozen=True)
class CpuShape:
    """A product of `batches` times m x n x k, and how A lies.

    `row_bytes` are those from a row of A to the next, where a row lies along k and is not computed;
    else None.
    """

    batches: int
    m: int
    n: int
    k: int
    row_bytes: int | None

    def chunks(self, microkernel: Microkernel, tiling: CpuTiling) -> int:
        """How many chunks the threads compute."""
        rows = -(-self.m // (microkernel.m * tiling.rows))
        return self.batches * rows * -(-self.n // (microkernel.n * tiling.columns))


def check_cpu_tiling(tiling: CpuTiling) -> None:
    """Raise ScheduleError for values that are none; ArgumentError for another type."""
    check_type("tiling", tiling, CpuTiling, "a CpuTiling")
    check_type("tiling.microkernel", tiling.microkernel, str, "the name of a micro-kernel")
    for name in ("rows", "columns"):
        value = check_integer(f"tiling.{name}", getattr(tiling, name))
        if value < 1:
            raise ScheduleError(f"tiling: {name}={value}, but a chunk has one tile or more")
    check_flag("tiling.parallel", tiling.parallel)
    check_flag("tiling.pack_a", tiling.pack_a)


def default_cpu_tiling(
    shape: CpuShape, microkernels: Sequence[Microkernel], caches: Caches, threads: int
) -> CpuTiling:
    """The tiling that should take the fewest cycles, of those whose panels fit the second cache."""
    return min(
        (tiling for each in microkernels for tiling in _offered(shape, each, caches, threads)),
        key=lambda found: found[0],
    )[1]


def _offered(
    shape: CpuShape, microkernel: Microkernel, caches: Caches, threads: int
) -> Iterator[tuple[float, CpuTiling]]:
    """(cycles, tiling) of each way to cut a product for a micro-kernel."""
    rows, columns = -(-shape.m // microkernel.m), -(-shape.n // microkernel.n)
    panel = shape.k * microkernel.n * microkernel.b.type.bits // 8
    most = max(1, 2 * caches.second // panel)
    packs = _displaces(shape, microkernel, caches)
    shares = {-(-columns // parts) for parts in (1, 2, 3, threads, 2 * threads)}
    widths = sorted(width for width in shares.union(_CHUNKS) if width <= min(columns, most))
    heights = sorted({-(-rows // parts) for parts in (1, 2, threads, 2 * threads)})
    for cut in product(heights, widths):
        for parallel in (False, True)[: 1 + (threads > 1)]:
            tiling = CpuTiling(microkernel.name, *cut, parallel, packs)
            cycles = _cycles(shape, microkernel, tiling, caches, threads if parallel else 1)
            yield cycles, tiling


def _displaces(shape: CpuShape, microkernel: Microkernel, caches: Caches) -> bool:
    """Whether the rows of a tile of A displace each other in the first cache, read as they lie."""
    if shape.row_bytes is None:
        return False
    return microkernel.m * gcd(shape.row_bytes, _PAGE) > caches.first


def _cycles(
    shape: CpuShape, microkernel: Microkernel, tiling: CpuTiling, caches: Caches, threads: int
) -> float:
    """An estimate, of one thread, that ranks tilings; a cycle is that of a multiply-add unit."""
    steps, vectors = len(microkernel.steps), microkernel.c.registers
    loads = microkernel.a.registers + microkernel.b.registers
    depth = -(-shape.k // microkernel.k)
    panels = shape.k * microkernel.n * tiling.columns * microkernel.b.type.bits // 8
    fit = panels <= caches.second // 2
    far = _far(microkernel, caches)
    read = far * microkernel.b.registers * (_NEAR if fit else 1)
    step = max(steps, loads, _LATENCY, read)
    if vectors + microkernel.b.registers + 1 >= _FULL and _has_edges(shape, microkernel, tiling):
        step *= _MOVED
    tile = depth * step + 2 * vectors + _TILE
    copied_b = far * (1 if fit else _OUT) * depth * microkernel.b.registers * tiling.columns
    copied_a = _copied_a(shape, microkernel, tiling, caches) * tiling.rows
    chunk = tiling.rows * tiling.columns * tile + copied_a + copied_b
    rounds = -(-shape.chunks(microkernel, tiling) // threads)
    return rounds * chunk + (_START if threads > 1 else 0)


def _has_edges(shape: CpuShape, microkernel: Microkernel, tiling: CpuTiling) -> bool:
    """Whether a chunk reaches past the rows or columns that there are."""
    rows, columns = microkernel.m * tiling.rows, microkernel.n * tiling.columns
    return shape.m % rows != 0 or shape.n % columns != 0


def _far(microkernel: Microkernel, caches: Caches) -> float:
    """Cycles that a vector takes from the third cache."""
    return microkernel.bits / 8 / caches.third_rate


def _copied_a(
    shape: CpuShape, microkernel: Microkernel, tiling: CpuTiling, caches: Caches
) -> float:
    """Cycles that a chunk takes for a row of tiles of A: to pack it, or for its first loads."""
    bits = microkernel.a.type.bits
    vectors = shape.k * microkernel.m * bits / microkernel.bits
    if shape.row_bytes is None:
        return _TURN * vectors
    if tiling.pack_a:
        return _far(microkernel, caches) * vectors
    chunk = shape.k * microkernel.m * tiling.rows * bits // 8
    return (_LOAD if chunk <= caches.second // 2 else _LOAD_IN) * vectors
